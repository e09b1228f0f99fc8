// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <QHBoxLayout>
#include <QTemporaryDir>
#include <QTest>

#include "app/gui/cluster/canvas.h"
#include "app/gui/cluster/cluster_page.h"

namespace evenkeel::gui {

/// A shown cluster page with its inspector and a document of its own.
class ClusterPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* layout = new QHBoxLayout(&window_);
    layout->addWidget(&page_, 1);
    layout->addWidget(page_.inspector());
    window_.resize(1400, 760);
    window_.show();
    window_.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    canvas_.setFocus();
  }

  void TearDown() override { page_.setParent(nullptr); }  // both are ours

  void draw(const char* shorthand) {
    document_.edit(QStringLiteral("draw"), [&](Project& project) { (void)pasteText(project, shorthand, {}); });
    ASSERT_FALSE(cluster().nodes.empty());
  }
  [[nodiscard]] const Cluster& cluster() const { return document_.project().cluster; }
  [[nodiscard]] std::string bytes() const { return toJson(document_.project()).dump(); }

  [[nodiscard]] QPoint pointOf(const std::string& box) const {
    return canvas_.mapFromScene(canvas_.drawing().box(box)->centre());
  }
  void press(QPoint at, Qt::KeyboardModifiers modifiers = {}) {
    QTest::mousePress(canvas_.viewport(), Qt::LeftButton, modifiers, at);
  }
  void moveTo(QPoint at) { QTest::mouseMove(canvas_.viewport(), at); }
  void release(QPoint at, Qt::KeyboardModifiers modifiers = {}) {
    QTest::mouseRelease(canvas_.viewport(), Qt::LeftButton, modifiers, at);
  }
  void click(QPoint at, Qt::KeyboardModifiers modifiers = {}) {
    QTest::mouseClick(canvas_.viewport(), Qt::LeftButton, modifiers, at);
  }
  void drag(QPoint from, QPoint to) {
    press(from);
    for (int step = 1; step <= 4; ++step) moveTo(from + (to - from) * step / 4);
    release(to);
  }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(&canvas_, key, modifiers); }
  template <class Widget>
  Widget* field(const char* name) {
    return page_.inspector()->findChild<Widget*>(QString::fromLatin1(name));
  }

  QTemporaryDir folder_;
  ProjectDocument document_{folder_.filePath(QStringLiteral("recovery"))};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  QWidget window_;
  ClusterPage page_{workspace_};
  Canvas& canvas_ = page_.canvas();
};

}  // namespace evenkeel::gui
