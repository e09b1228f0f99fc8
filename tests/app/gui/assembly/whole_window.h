// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QStackedWidget>
#include <QTest>
#include <string>

#include "app/gui/assembly/all_pages.h"
#include "app/gui/cluster/canvas.h"
#include "app/gui/cluster/cluster_edits.h"

namespace evenkeel::gui {

/// The main window with all of its pages, shown, and what a person does to it. Files lie in the given folder.
class WholeWindow {
 public:
  explicit WholeWindow(const QString& folder) : document_(folder + QStringLiteral("/recovery")) {
    addAllPages(window_, {folder, EVENKEEL_BIN_DIR});
    window_.resize(1440, 900);
    window_.show();
    window_.activateWindow();
  }

  [[nodiscard]] ProjectDocument& document() { return document_; }
  [[nodiscard]] const Project& project() const { return document_.project(); }
  [[nodiscard]] MainWindow& window() { return window_; }
  [[nodiscard]] std::string bytes() const { return toJson(project()).dump(); }

  /// By object name; the test ends here if there is none.
  template <class W>
  W& find(const char* name) {
    W* found = window_.findChild<W*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("nothing is called %s", name);
    return *found;
  }
  [[nodiscard]] Canvas& canvas() { return *window_.page(Mode::Cluster)->findChild<Canvas*>(); }
  [[nodiscard]] bool isShown(Mode mode) { return window_.page(mode)->isVisible(); }

  void click(const char* button) { QTest::mouseClick(&find<QWidget>(button), Qt::LeftButton); }
  /// To whatever has the focus, as a keyboard does.
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus != nullptr ? focus : static_cast<QWidget*>(&window_), key, modifiers);
  }
  /// Clicks into a field, replaces its text, leaves it with Tab.
  void write(const char* field, const QString& text) {
    QWidget& widget = find<QWidget>(field);
    QTest::mouseClick(&widget, Qt::LeftButton);
    QTest::keyClick(&widget, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&widget, text);
    QTest::keyClick(&widget, Qt::Key_Tab);
  }

 private:
  ProjectDocument document_;
  MainWindow window_{document_};
};

}  // namespace evenkeel::gui
