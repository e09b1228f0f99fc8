// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDateTime>
#include <QList>
#include <QObject>
#include <QString>
#include <QTimer>
#include <QUndoStack>
#include <functional>
#include <memory>

#include "app/gui/document/recovery_writer.h"
#include "core/plan/project.h"

namespace evenkeel::gui {

/// The parts of a project that views watch.
enum class Part { Cluster = 1, Layout = 2, Model = 4, Training = 8, Plans = 16, Runs = 32 };
Q_DECLARE_FLAGS(Parts, Part)
Q_DECLARE_OPERATORS_FOR_FLAGS(Parts)
/// What a document says that has become another one.
inline constexpr Parts kAllParts = Parts(Part::Cluster) | Part::Layout | Part::Model | Part::Training | Part::Plans | Part::Runs;
/// What a plan depends on.
inline constexpr Parts kPlanInputs = Parts(Part::Cluster) | Part::Model | Part::Training;

/// The one project of a window. Views read it, change it through edit() only, and hear of every change, also of undo, by
/// changed(). A second after a change it is on its way to a recovery file, so that a crash loses nothing that is two seconds old.
class ProjectDocument final : public QObject {
  Q_OBJECT

 public:
  /// recoveryFolder: where recovery files lie; made when it is first needed.
  explicit ProjectDocument(QString recoveryFolder, QObject* parent = nullptr);
  ~ProjectDocument() override;

  [[nodiscard]] const Project& project() const { return *project_; }
  /// The same, to be kept: a version of the project never changes.
  [[nodiscard]] const std::shared_ptr<const Project>& snapshot() const { return project_; }
  [[nodiscard]] QUndoStack& undoStack() { return undo_; }
  [[nodiscard]] const QString& path() const { return path_; }  // empty: never saved
  [[nodiscard]] QString title() const;                         // file name, or "Untitled"
  [[nodiscard]] bool isModified() const { return !undo_.isClean(); }

  /// Applies `change` to a copy of the project as one undo step with the given text. A change that changes nothing is no step.
  /// Consecutive edits with the same mergeKey (not empty) are one step: a drag, a spin box that is held.
  void edit(const QString& text, const std::function<void(Project&)>& change, const QString& mergeKey = {});

  /// Replaces everything by a project without a file, or by what a file holds; undo does not go behind it.
  void startNew(Project project = {});
  [[nodiscard]] Result<void> open(const QString& path);
  /// Atomic. Ends with isModified() == false.
  [[nodiscard]] Result<void> saveAs(const QString& path);
  /// Whether somebody else, as another window, has written the file since it was read or saved here.
  [[nodiscard]] bool isChangedOnDisk() const;

  /// What a crashed window left: a recovery file that nobody owns, newest first.
  struct Recovered {
    QString file, originalPath;
    QDateTime written;
  };
  [[nodiscard]] QList<Recovered> recoverable() const;
  /// Takes it over as a modified document.
  [[nodiscard]] Result<void> recover(const Recovered& recovered);
  static void discard(const Recovered& recovered);

 signals:
  void changed(evenkeel::gui::Parts parts);
  void pathChanged();

 private:
  friend class ProjectEdit;
  void apply(std::shared_ptr<const Project> project);
  void reset(Project project, const QString& path);
  void writeRecovery();
  void removeRecovery();

  QString recoveryFolder_, path_, stamp_;  // the stamp: of the file as it was read or saved
  std::shared_ptr<const Project> project_;  // never changed in place: undo steps and the recovery writer hold on to it
  RecoveryWriter recovery_;
  QUndoStack undo_;
  QTimer recoveryTimer_;
};

/// Whether the plan was made for another cluster, model or training than the project has. Cost: a hash of these, 1 ms for a
/// hundred machines.
[[nodiscard]] bool isStale(const Plan& plan, const Project& project);

}  // namespace evenkeel::gui
