// SPDX-License-Identifier: GPL-3.0-or-later
// What the window's thread spends, as CPU time of that thread; the aim is 16 ms a frame and a turn of the event loop.
//   bench_window [gap] [canvas] [timeline] [curve]     nothing given: all
#include <fmt/format.h>

#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QMetaEnum>
#include <QSpinBox>
#include <QTabBar>
#include <QTemporaryDir>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>

#include "app/gui/cluster/canvas.h"
#include "app/gui/plot/curve_plot.h"
#include "app/gui/run/run_page.h"
#include "app/gui/theme/theme.h"
#include "app/gui/timeline/timeline_view.h"
#include "core/profile/analytic_profile.h"
#include "tests/app/gui/assembly/whole_window.h"
#include "tests/support/plans.h"

namespace evenkeel::gui {
namespace {

double cpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void report(const char* what, std::vector<double> milliseconds) {
  std::ranges::sort(milliseconds);
  fmt::print("  {:<46} p50 {:7.2f} ms   worst {:7.2f} ms   of {}\n", what, milliseconds[milliseconds.size() / 2],
             milliseconds.back(), milliseconds.size());
  std::fflush(stdout);
}

/// An application that knows what each event that comes from outside (not from within another event) costs.
class TimedApplication final : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_ > 0 || !isTiming) return QApplication::notify(receiver, event);
    const std::string what = fmt::format("{} {} {}", receiver->metaObject()->className(), receiver->objectName().toStdString(),
                                         QMetaEnum::fromType<QEvent::Type>().valueToKey(event->type()));
    ++depth_;
    const double start = cpuMilliseconds();
    const bool done = QApplication::notify(receiver, event);
    --depth_;
    ofTurn.emplace_back(cpuMilliseconds() - start, what);
    return done;
  }
  std::vector<std::pair<double, std::string>> ofTurn;  // of the present turn: what it took, and what it was
  bool isTiming = false;

 private:
  int depth_ = 0;
};

/// CPU time of each turn of the event loop, from one wait to the next.
class Turns {
 public:
  explicit Turns(TimedApplication& application) : application_(application) {
    application_.ofTurn.clear();
    application_.isTiming = true;
    watch_ = QObject::connect(QAbstractEventDispatcher::instance(), &QAbstractEventDispatcher::aboutToBlock, [this] {
      const double now = cpuMilliseconds();
      if (last_) {
        if (turns_.empty() || now - *last_ > std::ranges::max(turns_)) inWorst_ = application_.ofTurn;
        turns_.push_back(now - *last_);
      }
      application_.ofTurn.clear();
      last_ = cpuMilliseconds();
    });
  }
  void end(const char* what) {
    QObject::disconnect(watch_);
    application_.isTiming = false;
    report(what, turns_);
    std::ranges::sort(inWorst_, std::greater{});
    for (std::size_t i = 0; i < std::min<std::size_t>(5, inWorst_.size()); ++i)
      if (inWorst_[i].first > 1) fmt::print("      {:6.1f} ms  {}\n", inWorst_[i].first, inWorst_[i].second);
  }

 private:
  TimedApplication& application_;
  QMetaObject::Connection watch_;
  std::optional<double> last_;
  std::vector<double> turns_;
  std::vector<std::pair<double, std::string>> inWorst_;  // what the longest turn consists of
};

void runFor(int milliseconds) {
  QEventLoop loop;
  QTimer::singleShot(milliseconds, &loop, &QEventLoop::quit);
  loop.exec();
}
template <class F>
bool runUntil(const F& isDone, int milliseconds) {
  QEventLoop loop;
  QTimer poll;
  QObject::connect(&poll, &QTimer::timeout, [&] {
    if (isDone()) loop.quit();
  });
  poll.start(50);
  QTimer::singleShot(milliseconds, &loop, &QEventLoop::quit);
  loop.exec();
  return isDone();
}

/// A search on 1024 devices and a run of this machine, both live, while a person looks at one page after the other.
void gap(TimedApplication& application, const QString& folder) {
  fmt::print("turns of the event loop, a search on 1024 devices and a run live\n");
  WholeWindow shown(folder);
  Plan small = planOf(*parseClusterShorthand("1x2:cpu"), *modelFromArgument("tiny-gpt"), {{4, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}});
  small.training.sequenceLength = 16;
  shown.document().edit(QStringLiteral("problem"), [&](Project& project) {
    project.cluster = *parseClusterShorthand("64x8:A100-80-SXM,16x8:V100-32-SXM2,16x8:H100-80-SXM,16x8:A100-40-PCIe,8x8:L40S,8x8:RTX4090");
    project.model = *modelFromArgument("gpt3-30b");
    project.training.globalBatch = 2048;
    project.plans.push_back({"small", small});
  });
  shown.window().enter(Mode::Run);
  const QString text = folder + QStringLiteral("/text.txt");
  std::ofstream(text.toStdString()) << std::string(20'000, 'x') << "\n";
  shown.find<QLineEdit>("runData").setText(text);
  shown.find<QSpinBox>("runSteps").setValue(1'000'000);
  (void)runUntil([&] { return shown.find<QWidget>("runLaunch").isEnabled(); }, 10'000);
  shown.click("runLaunch");
  const bool runs = runUntil([&] { return !shown.find<CurvePlot>("lossCurve").points().empty(); }, 60'000);
  if (!runs) fmt::print("  (no run: built without LibTorch)\n");

  auto& plans = shown.find<QComboBox>("plans");
  auto& tabs = shown.find<QTabBar>("planTabs");
  for (const auto& [mode, tab, name] : {std::tuple{Mode::Plan, 0, "Plan page, table"},
                                        {Mode::Plan, 1, "Plan page, cards"},
                                        {Mode::Plan, 2, "Plan page, timeline"},
                                        {Mode::Run, 0, "Run page"}}) {
    shown.window().enter(Mode::Plan);
    tabs.setCurrentIndex(tab);
    Turns turns(application);
    shown.click("searchStart");
    shown.window().enter(mode);
    runFor(8'000);
    shown.click("searchStop");
    const bool ended = runUntil([&] { return !shown.find<QWidget>("searchStop").isEnabled(); }, 60'000);
    runFor(2'500);  // what comes after: the plan is kept, the recovery file written
    turns.end(name);
    if (!ended) fmt::print("      the search did not stop\n");
  }
  shown.window().enter(Mode::Compare);
  {
    Turns turns(application);
    shown.click("compareStart");
    runFor(10'000);
    shown.click("compareStop");
    (void)runUntil([&] { return shown.find<QWidget>("compareStart").isEnabled(); }, 60'000);
    runFor(1'000);
    turns.end("Compare page");
  }
  {
    Turns turns(application);
    for (const Mode mode : {Mode::Cluster, Mode::Model, Mode::Plan, Mode::Run, Mode::Cluster, Mode::Plan}) {
      shown.window().enter(mode);
      runFor(300);
    }
    plans.setCurrentIndex(0);
    runFor(300);
    turns.end("from page to page");
  }
  if (!runs) return;
  auto launcher = Launcher::open();
  for (const RunRow& row : *launcher->runs()) {
    if (!hasEnded(row.state)) (void)launcher->stopJob(row.run);
  }
}

/// Frames of one widget, each after one step of an action.
class Frames {
 public:
  explicit Frames(QWidget& widget) : widget_(widget) {}
  template <class Step>
  void measure(const char* what, int count, const Step& step) {
    frame();
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const double start = cpuMilliseconds();
      step(i);
      frame();
      times.push_back(cpuMilliseconds() - start);
    }
    report(what, times);
  }

 private:
  /// Once, with all that the step has asked to be painted: as the event loop would.
  void frame() {
    widget_.update();
    QCoreApplication::processEvents();
  }
  QWidget& widget_;
};

void canvas(const QString& folder) {
  fmt::print("canvas, 1000 machines and 2000 links\n");
  WholeWindow shown(folder);
  shown.window().resize(1950, 1000);
  shown.document().edit(QStringLiteral("draw"), [](Project& project) {
    (void)pasteText(project, "500x8:A100-80-SXM,500x4:T4", {});
    arrange(project);
    for (int i = 0; i < 1000; ++i) {
      for (const int step : {1, 33}) project.cluster.links.push_back({i, (i + step) % 1000, {fromGbs(12.5), fromMicroseconds(5)}});
    }
  });
  shown.window().enter(Mode::Cluster);
  Canvas& view = shown.canvas();
  QWidget& port = *view.viewport();
  Frames frames(port);
  view.fit();
  frames.measure("all visible", 30, [](int) {});
  frames.measure("zoom at the cursor, from all", 30, [&](int i) { view.zoomTo(view.zoom() * (i % 2 == 0 ? 1.2 : 1 / 1.2), {300, 300}); });
  const auto pan = [&](int i) {
    QTest::mousePress(&port, Qt::MiddleButton, {}, {600, 400});
    QTest::mouseMove(&port, QPoint(600 - 15 * (i % 2), 400 - 9));
    QTest::mouseRelease(&port, Qt::MiddleButton, {}, {600 - 15 * (i % 2), 400 - 9});
  };
  const auto drag = [&](const char* what) {
    QGraphicsItem* box = view.itemAt(port.rect().center());
    for (int radius = 4; CanvasScene::nameOf(box).empty() || view.drawing().box(CanvasScene::nameOf(box)) == nullptr; radius += 4)
      box = view.itemAt(port.rect().center() + QPoint(radius, radius / 2));
    const std::string name = CanvasScene::nameOf(box);
    const auto centre = [&] { return view.mapFromScene(view.drawing().box(name)->centre()); };
    const QPoint at = centre();
    QTest::mousePress(&port, Qt::LeftButton, {}, at);
    frames.measure(what, 30, [&](int i) { QTest::mouseMove(&port, at + QPoint(7 * i, 5)); });
    std::vector<double> ends;
    for (int i = 0; i < 10; ++i) {
      const double start = cpuMilliseconds();
      QTest::mouseRelease(&port, Qt::LeftButton, {}, at + QPoint(210 + 7 * i, 5));
      QCoreApplication::processEvents();
      ends.push_back(cpuMilliseconds() - start);
      QTest::mousePress(&port, Qt::LeftButton, {}, centre());
      QTest::mouseMove(&port, at + QPoint(217 + 7 * i, 5));
      QCoreApplication::processEvents();
    }
    QTest::mouseRelease(&port, Qt::LeftButton, {}, centre());
    report("end of that drag, the edit", ends);
  };
  drag("drag of one, all visible");
  for (const double zoom : {0.5, 1.0}) {
    view.zoomTo(zoom, {600, 400});
    frames.measure(fmt::format("all drawn at {:.0f} %", 100 * zoom).c_str(), 30, [](int) {});
    frames.measure(fmt::format("pan at {:.0f} %", 100 * zoom).c_str(), 30, pan);
  }
  drag("drag of one at 100 %");
}

void timeline() {
  // three slices a micro-batch and stage
  constexpr int kStages = 64, kMicroBatches = 2605;
  Timeline made;
  for (int stage = 0; stage < kStages; ++stage) {
    made.lanes.push_back({.pipeline = 0, .stage = stage});
    double at = stage * 0.01;
    for (int micro = 0; micro < kMicroBatches; ++micro) {
      for (const auto& [kind, length] : {std::pair{Span::Kind::Forward, 0.010}, {Span::Kind::Backward, 0.021}, {Span::Kind::Wait, 0.002}}) {
        made.spans.push_back({.kind = kind, .lane = stage, .microBatch = micro, .start = {at}, .end = {at + length}});
        at += length;
      }
    }
  }
  fmt::print("timeline of {} slices\n", made.spans.size());
  TimelineView view;
  view.resize(1400, 850);
  view.show();
  const double start = cpuMilliseconds();
  view.setTimeline(made);
  report("taking it in", {cpuMilliseconds() - start});
  Frames frames(*view.viewport());
  frames.measure("all visible", 30, [](int) {});
  const auto wheel = [&](int delta, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event({700, 300}, view.mapToGlobal(QPointF(700, 300)), {}, {0, delta}, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(view.viewport(), &event);
  };
  frames.measure("zoom in at the cursor", 60, [&](int) { wheel(120, Qt::ControlModifier); });
  frames.measure("pan, zoomed in", 60, [&](int i) { QTest::keyClick(&view, i % 2 == 0 ? Qt::Key_D : Qt::Key_A); });
  frames.measure("zoom out", 60, [&](int) { wheel(-120, Qt::ControlModifier); });
}

void curve() {
  fmt::print("live curve of 1,000,000 points\n");
  CurvePlot plot({.x = QStringLiteral("step"), .y = QStringLiteral("loss"), .valueText = {}});
  plot.resize(1200, 500);
  plot.show();
  const auto valueAt = [](int i) { return i % 50'000 == 49'999 ? std::nan("") : 3 + std::sin(i * 0.001) + (i % 97) * 0.01 + (i % 300'000 == 7 ? 20 : 0); };
  double start = cpuMilliseconds();
  for (int i = 0; i < 1'000'000; ++i) plot.append(i, valueAt(i));
  report("appending a million", {cpuMilliseconds() - start});
  plot.draw();
  int next = 1'000'000;
  Frames frames(plot);
  frames.measure("50 new points a frame, all visible", 60, [&](int) {
    for (int i = 0; i < 50; ++i, ++next) plot.append(next, valueAt(next));
    plot.draw();
  });
  plot.setVisibleRange(400'000, 420'000);
  frames.measure("50 new points a frame, zoomed to 2 %", 60, [&](int) {
    for (int i = 0; i < 50; ++i, ++next) plot.append(next, valueAt(next));
    plot.draw();
  });
  frames.measure("pan", 60, [&](int i) {
    plot.setVisibleRange(400'000 + 200 * i, 420'000 + 200 * i);
    plot.draw();
  });
  start = cpuMilliseconds();
  plot.setSmoothing(0.99);
  plot.draw();
  report("another smoothing of all points", {cpuMilliseconds() - start});
  fmt::print("  {} points are not finite and marked\n", plot.notFiniteCount());
}

}  // namespace
}  // namespace evenkeel::gui

int main(int argc, char** argv) {
  using namespace evenkeel::gui;
  const QTemporaryDir home;
  for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}) qputenv(name, home.path().toUtf8());
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  TimedApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("evenkeel-bench"));
  applyTheme(application, ColourScheme::Light);
  const QStringList wanted = QApplication::arguments().mid(1);
  const auto isWanted = [&](const char* name) { return wanted.isEmpty() || wanted.contains(QString::fromLatin1(name)); };
  if (isWanted("canvas")) canvas(home.path());
  if (isWanted("timeline")) timeline();
  if (isWanted("curve")) curve();
  if (isWanted("gap")) gap(application, home.path());
}
