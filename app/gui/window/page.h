// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <functional>

#include "app/gui/document/project_document.h"
#include "app/gui/document/selection.h"
#include "app/gui/widgets/message_line.h"

namespace evenkeel::gui {

enum class Mode { Start, Cluster, Model, Plan, Compare, Run };

/// What pages share and tell the window: one document, one selection, one message line, one list of jobs.
class Workspace final : public QObject {
  Q_OBJECT

 public:
  Workspace(ProjectDocument& theDocument, Selection& theSelection, MessageLine& theMessages, QObject* parent = nullptr)
      : QObject(parent), document(theDocument), selection(theSelection), messages(theMessages) {}

  ProjectDocument& document;
  Selection& selection;
  MessageLine& messages;

  /// Every action shows the command that does the same: the newest stands in the Log panel, ready to be copied.
  void showCommand(const QString& command) { emit commandShown(command); }
  void log(const QString& text) { emit logged(text); }
  void goTo(Mode mode) { emit modeRequested(mode); }

 signals:
  void commandShown(const QString& command);
  void logged(const QString& text);
  void modeRequested(evenkeel::gui::Mode mode);
  /// A job of the Jobs panel and the status bar; fraction in [0, 1], below 0: not known. cancel may be empty.
  void jobStarted(int id, const QString& title, std::function<void()> cancel);
  void jobProgressed(int id, double fraction, const QString& text);
  void jobEnded(int id);
};

/// A page of the mode bar.
class Page : public QWidget {
  Q_OBJECT

 public:
  explicit Page(Workspace& workspace, QWidget* parent = nullptr) : QWidget(parent), workspace_(workspace) {}
  /// Why the page cannot be shown now ("Draw a cluster and choose a model first"); empty: it can.
  [[nodiscard]] virtual QString missing() const { return {}; }
  /// The widget for the inspector dock while this page is shown; null: none.
  [[nodiscard]] virtual QWidget* inspector() { return nullptr; }

 protected:
  Workspace& workspace_;
};

}  // namespace evenkeel::gui
