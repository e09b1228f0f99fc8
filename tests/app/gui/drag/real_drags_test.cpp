// SPDX-License-Identifier: GPL-3.0-or-later
// Three drags by a real pointer on a real display (Xvfb, moved by xdotool): what simulated events cannot drive, QDrag above all.
#include <gtest/gtest.h>

#include <QApplication>
#include <QProcess>
#include <QTemporaryDir>
#include <QTreeView>
#include <algorithm>
#include <optional>
#include <string_view>

#include "app/gui/theme/theme.h"
#include "tests/app/gui/assembly/whole_window.h"
#include "tests/app/gui/drag/real_display.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 60'000;  // a busy machine; nothing here waits for it to pass
std::string noDisplay;           // why there is none

class RealDrag : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!noDisplay.empty()) GTEST_SKIP() << noDisplay;
    shown_.emplace(folder_.path());
    shown_->window().move(40, 40);
    shown_->window().enter(Mode::Cluster);
    ASSERT_TRUE(QTest::qWaitForWindowActive(&shown_->window(), kLongMs));
  }
  void draw(const char* shorthand) {
    shown_->document().edit(QStringLiteral("draw"), [&](Project& project) {
      ASSERT_TRUE(pasteText(project, shorthand, {}));
      arrange(project);
    });
    shown_->canvas().fit();
  }
  [[nodiscard]] QPoint pointOf(const std::string& box) {
    Canvas& canvas = shown_->canvas();
    return canvas.viewport()->mapToGlobal(canvas.mapFromScene(canvas.drawing().box(box)->centre()));
  }
  /// By the pointer of the display, as slowly as a hand.
  void drag(QPoint from, QPoint to) {
    QStringList words;
    const auto move = [&](QPoint at) {
      words << QStringLiteral("mousemove") << QString::number(at.x()) << QString::number(at.y());
    };
    move(from);
    words << QStringLiteral("sleep") << QStringLiteral("0.1") << QStringLiteral("mousedown") << QStringLiteral("1");
    for (int step = 1; step <= 20; ++step) {
      move(from + (to - from) * step / 20);
      words << QStringLiteral("sleep") << QStringLiteral("0.03");
    }
    words << QStringLiteral("mouseup") << QStringLiteral("1");
    QProcess hand;
    hand.start(QStringLiteral("/usr/bin/xdotool"), words);
    ASSERT_TRUE(QTest::qWaitFor([&] { return hand.state() == QProcess::NotRunning; }, kLongMs));
    ASSERT_EQ(hand.exitCode(), 0) << hand.readAllStandardError().toStdString();
  }
  [[nodiscard]] const Project& project() { return shown_->project(); }

  QTemporaryDir folder_;
  std::optional<WholeWindow> shown_;
};

TEST_F(RealDrag, FromThePaletteOntoTheCanvasDrawsAMachine) {
  auto& palette = shown_->find<QTreeView>("paletteView");
  const QModelIndex vendor = palette.model()->index(1, 0);
  const QModelIndex type = palette.model()->index(0, 0, vendor);
  palette.scrollTo(type);
  const QPoint from = palette.viewport()->mapToGlobal(palette.visualRect(type).center());
  Canvas& canvas = shown_->canvas();
  drag(from, canvas.viewport()->mapToGlobal(QPoint(120, 160)));
  ASSERT_TRUE(QTest::qWaitFor([this] { return project().cluster.nodes.size() == 1; }, kLongMs));
  const BoxItem* box = canvas.drawing().box(project().cluster.nodes.front().name);
  EXPECT_TRUE(QRectF(box->pos(), box->size()).adjusted(-20, -20, 20, 20).contains(canvas.mapToScene(QPoint(120, 160))))
      << "where it was dropped";
  EXPECT_EQ(shown_->document().undoStack().count(), 1);
}

TEST_F(RealDrag, OfAMachineMovesItInOneStep) {
  draw("2x8:A100-80-SXM");
  const std::string name = project().cluster.nodes.front().name;
  const CanvasPoint before = project().layout.at(name);
  const QPoint from = pointOf(name);
  drag(from, from + QPoint(60, 180));
  ASSERT_TRUE(QTest::qWaitFor([&] { return project().layout.at(name) != before; }, kLongMs));
  EXPECT_GT(project().layout.at(name).y, before.y);
  EXPECT_EQ(shown_->document().undoStack().count(), 2);
  shown_->document().undoStack().undo();
  EXPECT_EQ(project().layout.at(name), before);
}

TEST_F(RealDrag, WithTheLinkToolJoinsTwoMachines) {
  draw("2x8:A100-80-SXM");
  shown_->canvas().setTool(Canvas::Tool::Link);
  drag(pointOf(project().cluster.nodes[0].name), pointOf(project().cluster.nodes[1].name));
  ASSERT_TRUE(QTest::qWaitFor([this] { return project().cluster.links.size() == 1; }, kLongMs));
}

}  // namespace
}  // namespace evenkeel::gui

/// An own main: the display must be there before the application is.
int main(int argc, char** argv) {
  using namespace evenkeel::gui;
  ::testing::InitGoogleTest(&argc, argv);
  const QTemporaryDir home;
  for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"})
    qputenv(name, home.path().toUtf8());
  std::optional<RealDisplay> display;
  noDisplay = RealDisplay::reasonToSkip();
  if (noDisplay.empty() && !::testing::GTEST_FLAG(list_tests)) {
    display.emplace();
    if (display->number().empty()) noDisplay = "Xvfb does not start";
  }
  qputenv("QT_QPA_PLATFORM", display && noDisplay.empty() ? "xcb" : "offscreen");
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("evenkeel-test"));
  applyTheme(application, ColourScheme::Light);
  return RUN_ALL_TESTS();
}
