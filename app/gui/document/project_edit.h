// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QUndoCommand>

#include "app/gui/document/project_document.h"

namespace evenkeel::gui {

/// One undo step: the project before and after. One command undoes every edit, whatever it was; neighbours share their versions.
class ProjectEdit final : public QUndoCommand {
 public:
  ProjectEdit(ProjectDocument& document, std::shared_ptr<const Project> after, const QString& text, QString mergeKey);
  void redo() override;
  void undo() override;
  [[nodiscard]] int id() const override;
  bool mergeWith(const QUndoCommand* other) override;

 private:
  ProjectDocument& document_;
  const std::shared_ptr<const Project> before_;
  std::shared_ptr<const Project> after_;
  const QString mergeKey_;
};

}  // namespace evenkeel::gui
