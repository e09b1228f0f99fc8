// SPDX-License-Identifier: GPL-3.0-or-later
// What a frame of a large drawing costs. It prints figures and asserts none; the aim is 16 ms of CPU time a frame.
#include <QGuiApplication>
#include <cstdio>
#include <ctime>

#include "tests/app/gui/cluster/cluster_page_fixture.h"

namespace evenkeel::gui {
namespace {

double cpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void report(const char* what, int frames, double milliseconds) {
  std::printf("  %-34s %6.2f ms a frame\n", what, milliseconds / frames);
  ::testing::Test::RecordProperty(what, std::to_string(milliseconds / frames));
}

TEST_F(ClusterPageTest, AThousandMachinesWithTwoThousandLinksCanBeMoved) {
  window_.resize(1950, 940);  // a canvas of about 1400 x 850
  document_.edit(QStringLiteral("draw"), [](Project& project) {
    ASSERT_TRUE(pasteText(project, "500x8:A100-80-SXM,500x4:T4", {}));
    arrange(project);
    for (int i = 0; i < 1000; ++i) {
      for (const int step : {1, 33}) {
        if (i + step < 1000) project.cluster.links.push_back({i, i + step, {fromGbs(12.5), fromMicroseconds(5)}});
      }
    }
  });
  constexpr int kFrames = 20;
  const auto frame = [&] {
    canvas_.viewport()->repaint();
    QCoreApplication::processEvents();
  };
  const auto measure = [&](const char* what, const std::function<void(int)>& step) {
    frame();
    const double start = cpuMilliseconds();
    for (int i = 0; i < kFrames; ++i) {
      step(i);
      frame();
    }
    report(what, kFrames, cpuMilliseconds() - start);
  };
  canvas_.fit();
  measure("all visible", [](int) {});
  measure("zoom at the cursor, from all", [&](int i) {
    canvas_.zoomTo(canvas_.zoom() * (i % 2 == 0 ? 1.2 : 1 / 1.2), {300, 300});
  });
  const QPoint far = pointOf("t4-3");
  press(far);
  measure("drag of one, all visible", [&](int i) { moveTo(far + QPoint(10 * i, 5)); });
  QTest::keyClick(&canvas_, Qt::Key_Escape);
  canvas_.zoomTo(0.5, {600, 400});
  measure("all drawn at 50 %", [](int) {});
  canvas_.zoomTo(1, {600, 400});
  measure("all drawn at 100 %", [](int) {});
  measure("pan at 100 %", [&](int i) {
    QTest::mousePress(canvas_.viewport(), Qt::MiddleButton, {}, {600, 400});
    QTest::mouseMove(canvas_.viewport(), QPoint(600 - 15 * (i % 2), 400 - 9));
    QTest::mouseRelease(canvas_.viewport(), Qt::MiddleButton, {}, {600 - 15 * (i % 2), 400 - 9});
  });
  const std::string some = CanvasScene::nameOf(canvas_.drawing().box("a100-80-sxm-7"));
  canvas_.centerOn(canvas_.drawing().box(some));
  const QPoint at = pointOf(some);
  press(at);
  measure("drag of one at 100 %", [&](int i) { moveTo(at + QPoint(7 * i, 9)); });
  const double start = cpuMilliseconds();
  release(at + QPoint(140, 9));
  report("end of a drag (the edit)", 1, cpuMilliseconds() - start);
  const int steps = document_.undoStack().count();
  document_.undoStack().undo();
  EXPECT_EQ(document_.undoStack().count(), steps);
  EXPECT_EQ(canvas_.drawing().boxes().size(), 1000u);
}

}  // namespace
}  // namespace evenkeel::gui
