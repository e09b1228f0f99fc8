// SPDX-License-Identifier: GPL-3.0-or-later
// What somebody does who sees the window for the first time, event by event, to a training that really runs.
#include <gmock/gmock.h>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTreeView>

#include "app/gui/plot/curve_plot.h"
#include "tests/app/gui/assembly/whole_window.h"
#include "tests/app/gui/run/run_fixture.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 90'000;  // a busy machine; nothing here waits for it to pass

class NewcomerTest : public RealJobs {
 protected:
  void SetUp() override {
    RealJobs::SetUp();
    if (IsSkipped()) return;
    shown_ = std::make_unique<WholeWindow>(QString::fromStdString((directory_.path() / "window").string()));
    ASSERT_TRUE(QTest::qWaitForWindowActive(&shown_->window()));
  }

  void drawTwoMachines() {
    shown_->click("startNew");
    ASSERT_TRUE(shown_->isShown(Mode::Cluster));
    // the first machine from the palette: filter, choose, Return
    shown_->write("paletteFilter", QStringLiteral("cpu"));
    shown_->write("paletteCount", QStringLiteral("2"));
    auto& palette = shown_->find<QTreeView>("paletteView");
    const QModelIndex vendor = palette.model()->index(0, 0);
    const QRect row = palette.visualRect(palette.model()->index(0, 0, vendor));
    QTest::mouseClick(palette.viewport(), Qt::LeftButton, {}, row.center());
    QTest::keyClick(&palette, Qt::Key_Return);
    ASSERT_EQ(shown_->project().cluster.nodes.size(), 1U);
    // the second on the canvas by its key, made half as fast in the inspector
    QTest::mouseClick(shown_->canvas().viewport(), Qt::LeftButton, {}, {8, 8});
    QTest::keyClick(&shown_->canvas(), Qt::Key_N);
    ASSERT_EQ(shown_->project().cluster.nodes.size(), 2U);
    auto& type = shown_->find<QComboBox>("machineType");
    type.lineEdit()->selectAll();
    QTest::keyClicks(type.lineEdit(), QStringLiteral("cpu@0.5"));
    QTest::keyClick(type.lineEdit(), Qt::Key_Return);
    ASSERT_EQ(shown_->project().cluster.deviceCount(), 4);
    ASSERT_EQ(shown_->project().cluster.typeOf({1, 0}).speed, 0.5);
  }

  void chooseTheModel() {
    QTest::keyClick(&shown_->window(), Qt::Key_2, Qt::ControlModifier);
    ASSERT_TRUE(shown_->isShown(Mode::Model));
    auto& presets = shown_->find<QListWidget>("presets");
    const auto found = presets.findItems(QStringLiteral("tiny-gpt"), Qt::MatchExactly);
    ASSERT_EQ(found.size(), 1);
    presets.scrollToItem(found.front());
    QTest::mouseClick(presets.viewport(), Qt::LeftButton, {}, presets.visualItemRect(found.front()).center());
    shown_->write("globalBatch", QStringLiteral("13"));
    shown_->write("sequenceLength", QStringLiteral("16"));
    ASSERT_TRUE(shown_->project().model);
    EXPECT_EQ(shown_->project().training.globalBatch, 13);
    EXPECT_EQ(shown_->project().training.sequenceLength, 16);
  }

  void search() {
    QTest::keyClick(&shown_->window(), Qt::Key_3, Qt::ControlModifier);
    ASSERT_TRUE(shown_->isShown(Mode::Plan));
    QTest::keyClick(shown_->window().page(Mode::Plan), Qt::Key_F5);
    ASSERT_TRUE(QTest::qWaitFor([this] { return shown_->project().plans.size() == 1; }, kLongMs));
    EXPECT_TRUE(QTest::qWaitFor([this] { return shown_->find<QWidget>("planTable").isVisible(); }, kLongMs));
    EXPECT_TRUE(shown_->find<QPlainTextEdit>("logText").toPlainText().contains(QStringLiteral("$ evenkeel-cli plan ")));
  }

  void compareAndUseAnother() {
    QTest::keyClick(&shown_->window(), Qt::Key_4, Qt::ControlModifier);
    ASSERT_TRUE(shown_->isShown(Mode::Compare));
    QTest::keyClick(shown_->window().page(Mode::Compare), Qt::Key_F5);
    ASSERT_TRUE(QTest::qWaitFor([this] { return shown_->find<QWidget>("compareStart").isEnabled(); }, kLongMs));
    auto* use = shown_->find<QWidget>("column-uniform").findChild<QPushButton*>(QStringLiteral("compareUse"));
    ASSERT_TRUE(use->isVisible());
    QTest::mouseClick(use, Qt::LeftButton);
    ASSERT_TRUE(shown_->isShown(Mode::Plan)) << "the plan that is used is shown";
    ASSERT_EQ(shown_->project().plans.size(), 2U);
  }

  /// Until the curve moves; gives the run's id.
  void launch(std::string& run) {
    QTest::keyClick(&shown_->window(), Qt::Key_5, Qt::ControlModifier);
    ASSERT_TRUE(shown_->isShown(Mode::Run));
    shown_->find<QComboBox>("runPlan").setCurrentIndex(0);  // that of the search, which uses both machines
    QGuiApplication::clipboard()->setText(QString::fromStdString(data().string()));
    QTest::keyClick(&shown_->find<QLineEdit>("runData"), Qt::Key_V, Qt::ControlModifier);
    shown_->write("runSteps", QStringLiteral("1000000"));
    ASSERT_TRUE(shown_->find<QCheckBox>("runLocal").isChecked()) << "no machine has an ssh target";
    ASSERT_TRUE(QTest::qWaitFor([this] { return shown_->find<QPushButton>("runLaunch").isEnabled(); }, kLongMs)) << shown_->find<QLabel>("runHint").text().toStdString();
    shown_->click("runLaunch");
    const auto& points = shown_->find<CurvePlot>("lossCurve").points();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !points.empty(); }, kLongMs))
        << shown_->find<QLabel>("outcomeText").text().toStdString();
    const std::size_t before = points.size();
    ASSERT_TRUE(QTest::qWaitFor([&] { return points.size() >= before + 2; }, kLongMs));
    const auto rows = Launcher::open()->runs();
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ(rows->front().state, JobState::Running);
    run = rows->front().run;
  }

  /// Closing ends nothing; the next window knows the run and shows all of its curve.
  void closeAndComeBack() {
    const QString folder = QString::fromStdString((directory_.path() / "window").string());
    shown_.reset();
    shown_ = std::make_unique<WholeWindow>(folder);
    ASSERT_TRUE(QTest::qWaitFor([this] { return shown_->window().findChild<QPushButton*>(QStringLiteral("startAttach")) != nullptr; }, kLongMs));
    shown_->click("startAttach");
    ASSERT_TRUE(shown_->isShown(Mode::Run));
    const auto& points = shown_->find<CurvePlot>("lossCurve").points();
    ASSERT_TRUE(QTest::qWaitFor([&] { return points.size() >= 3; }, kLongMs));
    EXPECT_EQ(points.front().x, 1) << "from the first step on";
    const std::size_t before = points.size();
    ASSERT_TRUE(QTest::qWaitFor([&] { return points.size() > before; }, kLongMs)) << "it goes on";
  }

  void stop(const std::string& run) {
    shown_->click("runStop");
    auto* question = shown_->window().findChild<QMessageBox*>(QStringLiteral("stopQuestion"));
    ASSERT_NE(question, nullptr);
    QTest::mouseClick(question->findChild<QPushButton*>(QStringLiteral("stopNow")), Qt::LeftButton);
    const auto& outcome = shown_->find<QLabel>("outcomeText");
    ASSERT_TRUE(QTest::qWaitFor([&] { return outcome.text().contains(QStringLiteral("nothing of the run is left")); }, kLongMs))
        << outcome.text().toStdString();
    EXPECT_EQ(Launcher::open()->statusOf(run)->state, JobState::Stopped);
  }

  std::unique_ptr<WholeWindow> shown_;
};

TEST_F(NewcomerTest, DrawsPlansComparesLaunchesWatchesAndStops) {
  const std::string atFirst = shown_->bytes();
  ASSERT_NO_FATAL_FAILURE(drawTwoMachines());
  ASSERT_NO_FATAL_FAILURE(chooseTheModel());
  ASSERT_NO_FATAL_FAILURE(search());
  ASSERT_NO_FATAL_FAILURE(compareAndUseAnother());
  std::string run;
  ASSERT_NO_FATAL_FAILURE(launch(run));
  EXPECT_THAT(shown_->project().runs, ::testing::ElementsAre(run)) << "the project remembers its runs";
  shown_->document().undoStack().setIndex(0);
  EXPECT_EQ(shown_->bytes(), atFirst);
  ASSERT_NO_FATAL_FAILURE(closeAndComeBack());
  ASSERT_NO_FATAL_FAILURE(stop(run));
}

}  // namespace
}  // namespace evenkeel::gui
