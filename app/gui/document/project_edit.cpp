// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/project_edit.h"

namespace evenkeel::gui {

ProjectEdit::ProjectEdit(ProjectDocument& document, std::shared_ptr<const Project> after, const QString& text, QString mergeKey)
    : QUndoCommand(text),
      document_(document),
      before_(document.project_),
      after_(std::move(after)),
      mergeKey_(std::move(mergeKey)) {}

void ProjectEdit::redo() { document_.apply(after_); }
void ProjectEdit::undo() { document_.apply(before_); }

int ProjectEdit::id() const { return mergeKey_.isEmpty() ? -1 : 1; }

bool ProjectEdit::mergeWith(const QUndoCommand* other) {
  const auto& next = static_cast<const ProjectEdit&>(*other);  // QUndoStack asks only for equal ids
  if (next.mergeKey_ != mergeKey_) return false;
  after_ = next.after_;
  setObsolete(*after_ == *before_);
  return true;
}

}  // namespace evenkeel::gui
