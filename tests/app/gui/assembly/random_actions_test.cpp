// SPDX-License-Identifier: GPL-3.0-or-later
// Somebody who presses whatever there is, in the whole window: nothing breaks, every state can be saved and read back, and undo
// to the start gives the first document byte for byte. 10,000 actions with EVENKEEL_FULL, a share of them without.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLineEdit>
#include <QListWidget>
#include <QSpinBox>
#include <QTabBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QTreeView>
#include <random>

#include "app/gui/theme/theme.h"
#include "tests/app/gui/assembly/whole_window.h"
#include "tests/support/sweep.h"

namespace evenkeel::gui {
namespace {

constexpr std::size_t kMostNodes = 24;  // then half of them goes: the test is about actions, not about size
constexpr int kPatience = 60'000;       // ms; only a hanging search takes so long

class Monkey {
 public:
  Monkey(WholeWindow& shown, unsigned seed) : shown_(shown), random_(seed) {
    for (const char* view : {"outline", "planTable"}) watch(*shown_.find<QTreeView>(view).model());
    watch(*shown_.find<QTableView>("bandwidthMatrix").model());
  }

  void act() {
    switch (number(0, 15)) {
      case 0: return turnPage();
      case 1:
      case 2:
      case 3:
      case 4: return pressCanvasKey();
      case 5:
      case 6: return useMouse();
      case 7: return link();
      case 8: return rename();
      case 9:
      case 10: return writeInspector();
      case 11: return writeMatrix();
      case 12: return chooseModel();
      case 13: return chooseTraining();
      case 14: return undoOrRedo();
      default: return plan();
    }
  }
  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  template <class T>
  const T& any(const std::vector<T>& things) {
    return things[static_cast<std::size_t>(number(0, static_cast<int>(things.size()) - 1))];
  }
  void watch(QAbstractItemModel& model) {
    new QAbstractItemModelTester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal, &model);
  }
  void enter(Mode mode) {
    shown_.window().enter(mode);
    QCoreApplication::processEvents();
  }
  Canvas& canvas() {
    enter(Mode::Cluster);
    shown_.find<QTabBar>("qt_tabwidget_tabbar").setCurrentIndex(0);
    shown_.canvas().setFocus();
    return shown_.canvas();
  }
  [[nodiscard]] const Cluster& cluster() const { return shown_.project().cluster; }
  std::string anyBox() {
    std::vector<std::string> names;
    for (const Node& node : cluster().nodes) names.push_back(node.name);
    for (const Switch& s : cluster().switches) names.push_back(s.name);
    return names.empty() ? std::string() : any(names);
  }
  QPoint pointOf(const std::string& box) { return shown_.canvas().mapFromScene(shown_.canvas().drawing().box(box)->centre()); }
  Qt::KeyboardModifier anyModifier() {
    return any<Qt::KeyboardModifier>({Qt::NoModifier, Qt::NoModifier, Qt::ShiftModifier, Qt::ControlModifier});
  }

  void turnPage() {
    last_ = "turn a page";
    enter(any<Mode>({Mode::Start, Mode::Cluster, Mode::Model, Mode::Plan, Mode::Compare, Mode::Run}));
    if (number(0, 9) == 0) applyTheme(*qApp, any<ColourScheme>({ColourScheme::Light, ColourScheme::Dark}));
    shown_.find<QTabBar>("planTabs").setCurrentIndex(number(0, 2));
  }
  void pressCanvasKey() {
    Canvas& view = canvas();
    if (cluster().nodes.size() > kMostNodes) {
      last_ = "remove half";
      std::set<std::string> half;
      for (const Node& node : cluster().nodes)
        if (half.size() < kMostNodes / 2) half.insert(node.name);
      shown_.window().workspace().selection.setItems(half);
      QTest::keyClick(&view, Qt::Key_Delete);
      return;
    }
    using Press = std::pair<Qt::Key, Qt::KeyboardModifier>;
    const Press press = any<Press>({{Qt::Key_N, Qt::NoModifier},
                                    {Qt::Key_N, Qt::NoModifier},
                                    {Qt::Key_S, Qt::NoModifier},
                                    {Qt::Key_Delete, Qt::NoModifier},
                                    {Qt::Key_D, Qt::ControlModifier},
                                    {Qt::Key_C, Qt::ControlModifier},
                                    {Qt::Key_X, Qt::ControlModifier},
                                    {Qt::Key_V, Qt::ControlModifier},
                                    {Qt::Key_A, Qt::ControlModifier},
                                    {Qt::Key_L, Qt::ControlModifier},
                                    {Qt::Key_Left, Qt::NoModifier},
                                    {Qt::Key_Right, Qt::ShiftModifier},
                                    {Qt::Key_Up, Qt::NoModifier},
                                    {Qt::Key_Down, Qt::ShiftModifier},
                                    {Qt::Key_F, Qt::NoModifier},
                                    {Qt::Key_Plus, Qt::ControlModifier},
                                    {Qt::Key_Minus, Qt::ControlModifier},
                                    {Qt::Key_Escape, Qt::NoModifier}});
    last_ = "press " + QKeySequence(press.first).toString().toStdString();
    QTest::keyClick(&view, press.first, press.second);
  }
  void useMouse() {
    last_ = "use the mouse";
    Canvas& view = canvas();
    QWidget* port = view.viewport();
    const std::string box = anyBox();
    const auto place = [&] { return QPoint(number(0, port->width() - 1), number(0, port->height() - 1)); };
    const QPoint from = box.empty() || number(0, 3) == 0 ? place() : pointOf(box);
    if (number(0, 1) == 0) return QTest::mouseClick(port, Qt::LeftButton, anyModifier(), from);
    QTest::mousePress(port, Qt::LeftButton, anyModifier(), from);
    QPoint to;
    for (int step = 0; step < 3; ++step) QTest::mouseMove(port, to = place());
    if (number(0, 4) == 0) QTest::keyClick(&view, Qt::Key_Escape);
    if (number(0, 4) == 0) QTest::keyClick(&view, any<Qt::Key>({Qt::Key_Delete, Qt::Key_N}));  // in the middle of a drag
    QTest::mouseRelease(port, Qt::LeftButton, {}, to);
  }
  void link() {
    last_ = "link";
    Canvas& view = canvas();
    const std::string a = anyBox(), b = anyBox();
    if (a.empty()) return;
    QTest::keyClick(&view, Qt::Key_L);
    QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, pointOf(a));
    QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, pointOf(b));
    QTest::keyClick(&view, Qt::Key_Escape);
    QTest::keyClick(&view, Qt::Key_Escape);
  }
  void rename() {
    last_ = "rename";
    Canvas& view = canvas();
    const std::string box = anyBox();
    if (box.empty()) return;
    view.beginRename(box);
    auto* edit = view.findChild<QLineEdit*>(QStringLiteral("nameEdit"));
    QTest::keyClicks(edit, any<QString>({QStringLiteral("a"), QStringLiteral("b b"), QStringLiteral("x|y"), QString(),
                                         QStringLiteral("node-0")}));
    QTest::keyClick(edit, any<Qt::Key>({Qt::Key_Return, Qt::Key_Return, Qt::Key_Escape}));
  }
  void writeInspector() {
    last_ = "write into the inspector";
    canvas();
    std::set<std::string> items;
    const std::set<std::string> all = allItems(cluster());
    for (const std::string& item : all)
      if (number(0, 2) == 0) items.insert(item);
    shown_.window().workspace().selection.setItems(items);
    const char* name = any<const char*>({"machineName", "machineDevices", "intraBandwidth", "intraLatency", "nicBandwidth",
                                         "nicLatency", "sshHost", "sshUser", "sshIdentity", "pricePerHour", "switchName",
                                         "switchBandwidth", "switchTotal", "switchLatency", "linkBandwidth", "linkLatency"});
    auto& edit = shown_.find<QLineEdit>(name);
    if (!edit.isVisible() || !edit.isEnabled()) return;
    last_ += std::string(": ") + name;
    edit.setFocus();
    edit.selectAll();
    QTest::keyClicks(&edit, any<QString>({QStringLiteral("1"), QStringLiteral("12.5"), QStringLiteral("0"), QStringLiteral("-3"),
                                          QStringLiteral("4 x T4"), QStringLiteral("2 x A100-80-SXM + 2 x T4"),
                                          QStringLiteral("host-b"), QStringLiteral("1e400")}));
    QTest::keyClick(&edit, Qt::Key_Return);
    auto& count = shown_.find<QSpinBox>("machineCount");
    if (count.isVisible() && number(0, 1) == 0) QTest::keyClick(&count, any<Qt::Key>({Qt::Key_Up, Qt::Key_Down}));
    auto& ownNic = shown_.find<QWidget>("nicPerDevice");
    if (ownNic.isVisible() && number(0, 2) == 0) QTest::keyClick(&ownNic, Qt::Key_Space);
  }
  void writeMatrix() {
    last_ = "write into the matrix";
    enter(Mode::Cluster);
    auto& view = shown_.find<QTableView>("bandwidthMatrix");
    const int count = view.model()->rowCount();
    if (count == 0) return;
    const QModelIndex cell = view.model()->index(number(0, count - 1), number(0, count - 1));
    view.model()->setData(
        cell, any<QString>({QStringLiteral("5"), QStringLiteral("0.5"), QString(), QStringLiteral("fast"), QStringLiteral("-1")}),
        Qt::EditRole);
  }
  void chooseModel() {
    last_ = "choose a model";
    enter(Mode::Model);
    auto& presets = shown_.find<QListWidget>("presets");
    QListWidgetItem* item = presets.item(number(0, presets.count() - 1));
    presets.scrollToItem(item);
    QTest::mouseClick(presets.viewport(), Qt::LeftButton, {}, presets.visualItemRect(item).center());
  }
  void chooseTraining() {
    last_ = "choose training options";
    enter(Mode::Model);
    QWidget& field = shown_.find<QWidget>(
        any<const char*>({"globalBatch", "sequenceLength", "precision", "zeroStage", "gradientSync", "attention"}));
    for (int i = number(1, 3); i > 0; --i) QTest::keyClick(&field, any<Qt::Key>({Qt::Key_Up, Qt::Key_Down}));
  }
  void undoOrRedo() {
    last_ = "undo or redo";
    for (int i = number(1, 6); i > 0; --i) {
      QTest::keyClick(&shown_.window(), number(0, 2) == 0 ? Qt::Key_Y : Qt::Key_Z, Qt::ControlModifier);
    }
  }
  /// Seldom a search, which takes time; often what is done with its plans.
  void plan() {
    last_ = "plan";
    enter(Mode::Plan);
    if (!shown_.isShown(Mode::Plan)) return;
    if (number(0, 9) > 0) {
      auto& plans = shown_.find<QComboBox>("plans");
      if (plans.count() == 0) return;
      QTest::keyClick(&plans, any<Qt::Key>({Qt::Key_Up, Qt::Key_Down}));
      if (number(0, 3) == 0) shown_.click("planRemove");
      return;
    }
    last_ = "search";
    shown_.find<QComboBox>("planner").setCurrentText(QStringLiteral("uniform"));
    QTest::keyClick(shown_.window().page(Mode::Plan), Qt::Key_F5);
    QTest::qWait(number(0, 50));
    QTest::keyClick(shown_.window().page(Mode::Plan), Qt::Key_F5, Qt::ShiftModifier);
    ASSERT_TRUE(QTest::qWaitFor([this] { return !shown_.find<QWidget>("searchStop").isEnabled(); }, kPatience));
  }

  WholeWindow& shown_;
  std::mt19937 random_;
  std::string last_;
};

TEST(RandomActions, CanBeUndoneToTheFirstByteAndDoneAgainToTheLast) {
  const QTemporaryDir folder;
  WholeWindow shown(folder.path());
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&shown.window()));
  const std::string first = shown.bytes();
  Monkey monkey(shown, 20261130);
  const int actions = sweep(300, 10'000);
  for (int i = 0; i < actions; ++i) {
    ASSERT_NO_FATAL_FAILURE(monkey.act()) << "action " << i << ": " << monkey.last();
    QCoreApplication::processEvents();
    if (i % 25 != 0) continue;
    const auto again = parseProject(toJson(shown.project()), "the drawn project");
    ASSERT_TRUE(again) << "action " << i << ", " << monkey.last() << ": " << again.error().text();
    // Plans keep what they were found for; all that a hand can draw must come back as it was.
    ASSERT_TRUE(toJson(again->cluster) == toJson(shown.project().cluster) && again->layout == shown.project().layout)
        << "action " << i << ", " << monkey.last();
  }
  QUndoStack& undo = shown.document().undoStack();
  undo.setIndex(undo.count());
  const std::string last = shown.bytes();
  EXPECT_GT(undo.count(), actions / 10);
  std::printf("%d actions, %d undo steps, %zu machines at the end\n", actions, undo.count(),
              shown.project().cluster.nodes.size());
  undo.setIndex(0);
  EXPECT_TRUE(shown.bytes() == first);
  undo.setIndex(undo.count());
  EXPECT_TRUE(shown.bytes() == last);
  applyTheme(*qApp, ColourScheme::Light);
}

}  // namespace
}  // namespace evenkeel::gui
