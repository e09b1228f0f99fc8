// SPDX-License-Identifier: GPL-3.0-or-later
// Three drags by a real pointer on a real display (Xvfb, moved by xdotool): what simulated events cannot drive, QDrag above all.
#include <gtest/gtest.h>

#include <QApplication>
#include <QProcess>
#include <QTemporaryDir>
#include <QTreeView>
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "app/gui/theme/theme.h"
#include "tests/app/gui/assembly/whole_window.h"
#include "tests/app/gui/drag/real_display.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 60'000;  // a busy machine; nothing here waits for it to pass
std::string noDisplay;           // why there is none

/// One command of xdotool.
void point(std::initializer_list<std::string> words) {
  QStringList arguments;
  for (const std::string& word : words) arguments << QString::fromStdString(word);
  QProcess::execute(QStringLiteral("/usr/bin/xdotool"), arguments);
}

/// Counts what the application has been told of the pointer, for the thread that moves it.
class Watcher final : public QObject {
 public:
  enum What { Press, Move, kKinds };
  Watcher() { qApp->installEventFilter(this); }
  /// Does it, and waits until the application has been told; false if that takes too long (a move may well be merged with the
  /// next one).
  bool after(What what, const std::function<void()>& act) {
    std::unique_lock lock(mutex_);
    const int before = seen_[what];
    lock.unlock();
    act();
    lock.lock();
    const auto most = what == Press ? std::chrono::milliseconds(kLongMs / 2) : std::chrono::milliseconds(250);
    return told_.wait_for(lock, most, [&] { return seen_[what] != before; });
  }

 private:
  bool eventFilter(QObject*, QEvent* event) override {
    const QEvent::Type type = event->type();
    if (type == QEvent::MouseButtonPress) count(Press);
    else if (type == QEvent::MouseMove || type == QEvent::DragMove) count(Move);
    return false;
  }
  void count(What what) {
    const std::lock_guard lock(mutex_);
    ++seen_[what];
    told_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable told_;
  std::array<int, kKinds> seen_{};
};

class RealDrag : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!noDisplay.empty()) GTEST_SKIP() << noDisplay;
    shown_.emplace(folder_.path());
    shown_->window().move(40, 40);
    shown_->window().enter(Mode::Cluster);
    ASSERT_TRUE(QTest::qWaitForWindowActive(&shown_->window(), kLongMs));
    // The window manager has the last word on where it stands.
    ASSERT_TRUE(QTest::qWaitFor([this] { return (shown_->window().pos() - QPoint(40, 40)).manhattanLength() < 40; }, kLongMs));
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
  /// By the pointer of the display. The hand is a thread, because a drag has an event loop of its own; it goes on when the window
  /// has seen what it did, as people do, so that a busy machine only makes it slower.
  void drag(QPoint from, QPoint to) {
    Watcher watcher;
    std::atomic<bool> isDone = false, isSeen = true;
    const std::jthread hand([&] {
      point({"mousemove", "--sync", std::to_string(from.x()), std::to_string(from.y())});
      isSeen = watcher.after(Watcher::Press, [] { point({"mousedown", "1"}); });
      for (int step = 1; step <= 20; ++step) {
        const QPoint at = from + (to - from) * step / 20;
        watcher.after(Watcher::Move, [&] { point({"mousemove", std::to_string(at.x()), std::to_string(at.y())}); });
      }
      // A drop counts only where the target has answered the last move.
      for (const int jitter : {1, 0})
        watcher.after(Watcher::Move, [&] { point({"mousemove", std::to_string(to.x() + jitter), std::to_string(to.y())}); });
      point({"mouseup", "1"});
      isDone = true;
    });
    ASSERT_TRUE(QTest::qWaitFor([&] { return isDone.load(); }, kLongMs));
    ASSERT_TRUE(isSeen) << "the window never saw the button go down";
  }
  /// Until it had its effect: while the window manager still moves the window, or answers late, a drag may go astray, as a
  /// person's would. Where it starts and ends is looked up for every try.
  void dragUntil(const std::function<QPoint()>& from, const std::function<QPoint()>& to, const std::function<bool()>& effect) {
    for (int attempt = 0; attempt < 6 && !effect(); ++attempt) {
      drag(from(), to());
      (void)QTest::qWaitFor(effect, 4'000);
    }
    ASSERT_TRUE(effect());
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
  Canvas& canvas = shown_->canvas();
  dragUntil([&] { return palette.viewport()->mapToGlobal(palette.visualRect(type).center()); },
            [&] { return canvas.viewport()->mapToGlobal(QPoint(120, 160)); },
            [this] { return project().cluster.nodes.size() == 1; });
  const BoxItem* box = canvas.drawing().box(project().cluster.nodes.front().name);
  EXPECT_TRUE(QRectF(box->pos(), box->size()).adjusted(-20, -20, 20, 20).contains(canvas.mapToScene(QPoint(120, 160))))
      << "where it was dropped";
  EXPECT_EQ(shown_->document().undoStack().count(), 1);
}

TEST_F(RealDrag, OfAMachineMovesItInOneStep) {
  draw("2x8:A100-80-SXM");
  const std::string name = project().cluster.nodes.front().name;
  const CanvasPoint before = project().layout.at(name);
  dragUntil([&] { return pointOf(name); }, [&] { return pointOf(name) + QPoint(60, 180); },
            [&] { return project().layout.at(name) != before; });
  EXPECT_GT(project().layout.at(name).y, before.y);
  EXPECT_EQ(shown_->document().undoStack().count(), 2);
  shown_->document().undoStack().undo();
  EXPECT_EQ(project().layout.at(name), before);
}

TEST_F(RealDrag, WithTheLinkToolJoinsTwoMachines) {
  draw("2x8:A100-80-SXM");
  shown_->canvas().setTool(Canvas::Tool::Link);
  dragUntil([this] { return pointOf(project().cluster.nodes[0].name); },
            [this] { return pointOf(project().cluster.nodes[1].name); }, [this] { return project().cluster.links.size() == 1; });
  const Link& link = project().cluster.links.at(0);
  EXPECT_EQ(std::min(link.first, link.second), 0);
  EXPECT_EQ(std::max(link.first, link.second), 1);
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
