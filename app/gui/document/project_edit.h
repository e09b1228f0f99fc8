// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QUndoCommand>

#include "app/gui/document/project_document.h"

namespace evenkeel::gui {

/// One undo step: the project before and after. One command undoes every edit, whatever it was.
class ProjectEdit final : public QUndoCommand {
 public:
  ProjectEdit(ProjectDocument& document, Project after, const QString& text, QString mergeKey);
  void redo() override;
  void undo() override;
  [[nodiscard]] int id() const override;
  bool mergeWith(const QUndoCommand* other) override;

 private:
  ProjectDocument& document_;
  const Project before_;
  Project after_;
  const QString mergeKey_;
};

}  // namespace evenkeel::gui
