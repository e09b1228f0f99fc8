// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/run_page.h"

#include <gmock/gmock.h>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>

#include "app/gui/plot/curve_plot.h"
#include "app/gui/run/key_figures.h"
#include "app/gui/run/launch_form.h"
#include "app/gui/run/launchable.h"
#include "app/gui/run/outcome_view.h"
#include "app/gui/run/preflight_view.h"
#include "app/gui/run/run_log.h"
#include "app/gui/run/run_view.h"
#include "tests/app/gui/run/run_fixture.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 90'000;  // a busy machine; nothing here waits for it to pass

class RunPageTest : public RealJobs {
 protected:
  void SetUp() override {
    RealJobs::SetUp();
    if (IsSkipped()) return;
    page_ = std::make_unique<RunPage>(workspace_, EVENKEEL_BIN_DIR);
    page_->resize(1200, 700);
    page_->show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(page_.get()));
  }
  template <class W>
  W* find(const char* name) {
    return page_->findChild<W*>(QString::fromLatin1(name));
  }
  void addPlan(const Plan& plan, const std::string& name = "by hand") {
    document_.edit(QStringLiteral("plan"), [&](Project& project) { project.plans.push_back({name, plan}); });
    EXPECT_TRUE(QTest::qWaitFor([&] { return !label("runHint").startsWith(QStringLiteral("Looking")); }, kLongMs));
  }
  void type(const char* name, const QString& text) {
    auto* line = find<QLineEdit>(name);
    line->selectAll();
    QTest::keyClicks(line, text);
  }
  void press(const char* name) { QTest::mouseClick(find<QPushButton>(name), Qt::LeftButton); }
  QString label(const char* name) { return find<QLabel>(name)->text(); }
  bool waitForState(const QString& text) {
    return QTest::qWaitFor([&] { return label("runState").contains(text); }, kLongMs);
  }

  ProjectDocument document_{QString::fromStdString((directory_.path() / "recovery").string())};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  std::unique_ptr<RunPage> page_;
};

TEST_F(RunPageTest, WithoutAPlanLeadsToThePlanPage) {
  EXPECT_TRUE(page_->missing().isEmpty()) << "earlier runs can always be looked at";
  EXPECT_FALSE(find<QPushButton>("runLaunch")->isEnabled());
  const QSignalSpy asked(&workspace_, &Workspace::modeRequested);
  for (QPushButton* button : page_->findChildren<QPushButton*>()) {
    if (button->isVisible() && button->text() == QStringLiteral("Go to Plan")) QTest::mouseClick(button, Qt::LeftButton);
  }
  ASSERT_EQ(asked.size(), 1);
  EXPECT_EQ(asked.front().front().value<Mode>(), Mode::Plan);
}

TEST_F(RunPageTest, ShowsTheCommandThatDoesTheSame) {
  addPlan(plan());
  EXPECT_FALSE(find<QPushButton>("runLaunch")->isEnabled()) << "no data yet";
  EXPECT_TRUE(label("runHint").contains(QStringLiteral("Name the text")));
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  find<QSpinBox>("runSteps")->setValue(3);
  const QString command = find<QPlainTextEdit>("runCommand")->toPlainText();
  EXPECT_TRUE(command.startsWith(QStringLiteral("evenkeel-cli launch "))) << command.toStdString();
  for (const char* part : {"--steps 3", "--local", "--data "})
    EXPECT_TRUE(command.contains(QString::fromLatin1(part))) << command.toStdString();
  EXPECT_TRUE(find<QPushButton>("runLaunch")->isEnabled());
  const QSignalSpy shown(&workspace_, &Workspace::commandShown);
  press("runCopy");
  EXPECT_EQ(QGuiApplication::clipboard()->text(), command);
  ASSERT_EQ(shown.size(), 1);
  // the plan that the command names is there and is the same
  const auto folder = directory_.path() / "data";
  bool found = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json") found = found || *loadPlan(entry.path()) == *parsePlan(toJson(plan()), "x");
  }
  EXPECT_TRUE(found);
  type("runLearningRate", QStringLiteral("abc"));
  EXPECT_TRUE(find<QLineEdit>("runLearningRate")->text() != QStringLiteral("abc"));
}

TEST_F(RunPageTest, FurtherSettingsOfADialogGoIntoTheCommandAndTheRun) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  EXPECT_EQ(label("runSettings"), QStringLiteral("as usual"));
  const auto openDialog = [&] {
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);  // lets the closed one go
    QTest::mouseClick(find<QToolButton>("runChangeSettings"), Qt::LeftButton);
    auto* dialog = find<QDialog>("settingsDialog");
    EXPECT_NE(dialog, nullptr);
    return dialog;
  };
  QDialog* dialog = openDialog();
  dialog->findChild<QComboBox*>(QStringLiteral("settingsSchedule"))->setCurrentIndex(1);
  dialog->findChild<QDoubleSpinBox*>(QStringLiteral("settingsClip"))->setValue(1.5);
  dialog->findChild<QDoubleSpinBox*>(QStringLiteral("settingsDropout"))->setValue(0.1);
  dialog->findChild<QLineEdit*>(QStringLiteral("settingsValidation"))->setText(QStringLiteral("/held/out.txt"));
  dialog->accept();
  EXPECT_EQ(label("runSettings"), QStringLiteral("linear · clip 1.5 · dropout 0.1 · evaluated every 100 steps"));
  const QString command = find<QPlainTextEdit>("runCommand")->toPlainText();
  for (const char* part :
       {"--schedule linear", "--gradient-clip 1.5", "--dropout 0.1", "--validation /held/out.txt", "--evaluate-every 100"})
    EXPECT_TRUE(command.contains(QString::fromLatin1(part))) << command.toStdString();
  ASSERT_TRUE(page_->findChild<LaunchForm*>()->request());
  EXPECT_EQ(page_->findChild<LaunchForm*>()->request()->run.gradientClip, 1.5);

  // What is cancelled changes nothing; defaults are one button away.
  dialog = openDialog();
  dialog->findChild<QDoubleSpinBox*>(QStringLiteral("settingsClip"))->setValue(7);
  dialog->reject();
  EXPECT_EQ(page_->findChild<LaunchForm*>()->request()->run.gradientClip, 1.5);
  dialog = openDialog();
  dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::RestoreDefaults)->click();
  dialog->accept();
  EXPECT_EQ(label("runSettings"), QStringLiteral("as usual"));
}

TEST_F(RunPageTest, SaysWhyAPlanCannotBeLaunched) {
  Plan lost = plan();
  lost.pipelines[0].localBatch = 3;  // of 4 samples
  addPlan(lost);
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  EXPECT_FALSE(find<QPushButton>("runLaunch")->isEnabled());
  EXPECT_TRUE(label("runHint").contains(QStringLiteral("cannot be launched"))) << label("runHint").toStdString();
  EXPECT_TRUE(label("runHint").contains(QStringLiteral("3"))) << label("runHint").toStdString();
}

TEST_F(RunPageTest, LaunchesAShortRunShowsItsCurvesAndOpensItAgain) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  find<QSpinBox>("runSteps")->setValue(3);
  const QSignalSpy begun(&workspace_, &Workspace::jobStarted), ended(&workspace_, &Workspace::jobEnded);
  QStringList told;
  page_->setDesktopMessage([&](const QString& title, const QString& text) { told << title << text; });
  press("runLaunch");
  EXPECT_FALSE(find<QPushButton>("runLaunch")->isEnabled()) << "one job at a time";
  ASSERT_TRUE(waitForState(QStringLiteral("finished"))) << label("runState").toStdString() << label("outcomeText").toStdString();
  EXPECT_EQ(begun.size(), 1);
  EXPECT_EQ(ended.size(), 1);
  ASSERT_EQ(told.size(), 2);
  EXPECT_EQ(told[0], QStringLiteral("Run finished"));
  EXPECT_TRUE(told[1].contains(QStringLiteral("step 3"))) << told[1].toStdString();
  auto* loss = find<CurvePlot>("lossCurve");
  EXPECT_EQ(loss->points().size(), 3U);
  EXPECT_EQ(find<CurvePlot>("throughputCurve")->points().size(), 3U);
  EXPECT_EQ(label("figure-step"), QStringLiteral("3"));
  EXPECT_TRUE(label("preflightHeadline").startsWith(QStringLiteral("✓"))) << label("preflightHeadline").toStdString();
  EXPECT_FALSE(find<QTreeWidget>("preflightRows")->isVisible()) << "it folds when all is good";
  EXPECT_TRUE(find<QPushButton>("runLaunch")->isEnabled());
  EXPECT_FALSE(find<QPushButton>("runStop")->isVisible());

  auto* list = find<QTreeWidget>("runList");
  ASSERT_TRUE(QTest::qWaitFor([&] { return list->topLevelItemCount() == 1; }, kLongMs));
  list->setCurrentItem(list->topLevelItem(0));
  const auto before = loss->points().front().y;
  press("runOpen");
  ASSERT_TRUE(waitForState(QStringLiteral("finished")));
  ASSERT_TRUE(QTest::qWaitFor([&] { return loss->points().size() == 3; }, kLongMs));
  EXPECT_EQ(loss->points().front().y, before);
}

TEST_F(RunPageTest, ShowsWhatIsMissingWithItsRemedy) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString((directory_.path() / "nothing.txt").string()));
  press("runLaunch");
  ASSERT_TRUE(waitForState(QStringLiteral("not started"))) << label("runState").toStdString();
  auto* rows = find<QTreeWidget>("preflightRows");
  EXPECT_TRUE(rows->isVisible());
  EXPECT_TRUE(rows->topLevelItem(0)->text(1).startsWith(QStringLiteral("✕"))) << "objections stand on top";
  EXPECT_TRUE(label("outcomeText").contains(QStringLiteral("Nothing was started"))) << label("outcomeText").toStdString();
  EXPECT_TRUE(find<QPushButton>("runLaunch")->isEnabled()) << "one can mend it and try again";
}

TEST_F(RunPageTest, DetachesFromARunFindsItAgainAndStopsItAfterAsking) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  find<QSpinBox>("runSteps")->setValue(1'000'000);
  press("runLaunch");
  auto* loss = find<CurvePlot>("lossCurve");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !loss->points().empty(); }, kLongMs));
  press("runDetach");
  ASSERT_TRUE(QTest::qWaitFor([&] { return label("outcomeText").contains(QStringLiteral("Detached")); }, kLongMs));
  const auto rows = Launcher::open()->runs();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().state, JobState::Running);

  page_->open(rows->front().run);
  ASSERT_TRUE(QTest::qWaitFor([&] { return loss->points().size() >= 2; }, kLongMs));
  press("runStop");
  auto* question = find<QMessageBox>("stopQuestion");
  ASSERT_NE(question, nullptr);
  EXPECT_EQ(Launcher::open()->runs()->front().state, JobState::Running) << "it asks first";
  QTest::mouseClick(question->findChild<QPushButton*>(QStringLiteral("stopNow")), Qt::LeftButton);
  ASSERT_TRUE(waitForState(QStringLiteral("stopped"))) << label("runState").toStdString();
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return label("outcomeText").contains(QStringLiteral("nothing of the run is left")); }, kLongMs))
      << label("outcomeText").toStdString();
}

TEST_F(RunPageTest, GoesOnFromTheCheckpointOfARunThatWasStopped) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  find<QSpinBox>("runSteps")->setValue(1'000'000);
  find<QSpinBox>("runCheckpointEvery")->setValue(2);
  EXPECT_TRUE(find<QPlainTextEdit>("runCommand")->toPlainText().contains(QStringLiteral("--checkpoint-every 2")));
  press("runLaunch");
  auto launcher = Launcher::open();
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto rows = launcher->runs();
        return !rows->empty() && !launcher->lastCheckpointOf(rows->front().run)->empty();
      },
      kLongMs));
  press("runStop");
  auto* question = find<QMessageBox>("stopQuestion");
  ASSERT_NE(question, nullptr);
  QTest::mouseClick(question->findChild<QPushButton*>(QStringLiteral("stopNow")), Qt::LeftButton);
  ASSERT_TRUE(waitForState(QStringLiteral("stopped"))) << label("runState").toStdString();
  auto* resume = find<QPushButton>("resumeRun");
  ASSERT_TRUE(QTest::qWaitFor([&] { return resume->isVisible(); }, kLongMs));
  QTest::mouseClick(resume, Qt::LeftButton);
  const QString checkpoint = find<QLineEdit>("runResume")->text();
  EXPECT_TRUE(resume->text().contains(QString::number(checkpoint.section(QLatin1Char('-'), -1).toInt()))) << resume->text().toStdString();
  EXPECT_TRUE(find<QPlainTextEdit>("runCommand")->toPlainText().contains(QStringLiteral("--resume"))) << "the command does the same";
  const int done = checkpoint.section(QLatin1Char('-'), -1).toInt();
  find<QSpinBox>("runSteps")->setValue(done + 2);
  press("runLaunch");
  ASSERT_TRUE(waitForState(QStringLiteral("finished"))) << label("runState").toStdString() << label("outcomeText").toStdString();
  const auto& points = find<CurvePlot>("lossCurve")->points();
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points.front().x, done + 1);
}

TEST_F(RunPageTest, ClosingItLeavesTheRunRunning) {
  addPlan(plan());
  find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
  find<QSpinBox>("runSteps")->setValue(1'000'000);
  press("runLaunch");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !find<CurvePlot>("lossCurve")->points().empty(); }, kLongMs));
  page_.reset();
  auto launcher = Launcher::open();
  const auto rows = launcher->runs();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(launcher->statusOf(rows->front().run)->state, JobState::Running);
}

SessionUpdate updateOf(SessionPhase phase, JobState job) {
  SessionUpdate update;
  update.state.phase = phase;
  update.state.run = "20261130-120000-abcd";
  update.state.job = job;
  update.state.isJobKnown = true;
  return update;
}

TEST(RunView, NamesTheRankTheNodeTheReasonAndTheLastStepOfAFailure) {
  RunView view;
  view.resize(900, 600);
  view.show();
  SessionUpdate update = updateOf(SessionPhase::Over, JobState::Failed);
  update.state.failure = JobFailure{.rank = 3, .node = "b3", .reason = "CUDA out of memory", .lastStep = 12};
  update.state.lastLines = "line 1\nline 2";
  view.take(update);
  const QString text = view.findChild<QLabel*>(QStringLiteral("outcomeText"))->text();
  for (const char* part : {"Rank 3", "b3", "CUDA out of memory", "12"})
    EXPECT_TRUE(text.contains(QString::fromLatin1(part))) << text.toStdString();
  EXPECT_EQ(view.findChild<QPlainTextEdit*>(QStringLiteral("outcomeLines"))->toPlainText(), QStringLiteral("line 1\nline 2"));
  EXPECT_TRUE(view.findChild<QLabel*>(QStringLiteral("runState"))->text().contains(QStringLiteral("failed")));
}

TEST(RunView, DoesNotCallALostConnectionAFailure) {
  RunView view;
  SessionUpdate update = updateOf(SessionPhase::Following, JobState::Running);
  update.state.lost["b3"] = "timed out";
  view.take(update);
  const auto text = [&](const char* name) { return view.findChild<QLabel*>(QString::fromLatin1(name))->text(); };
  EXPECT_TRUE(text("outcomeText").contains(QStringLiteral("believed to go on"))) << text("outcomeText").toStdString();
  EXPECT_TRUE(text("runState").contains(QStringLiteral("connection lost")));
  view.take(updateOf(SessionPhase::Following, JobState::Running));
  EXPECT_EQ(text("outcomeText"), QString());
  EXPECT_TRUE(text("runState").contains(QStringLiteral("running")));
}

// wandb #2202: a loss that is not finite is said, not left out.
TEST(RunView, SaysThatALossIsNotFinite) {
  RunView view;
  SessionUpdate update = updateOf(SessionPhase::Following, JobState::Running);
  update.steps = {{.step = 1, .loss = 2, .tokens = 64, .iterationMs = 10},
                  {.step = 2, .loss = std::nan(""), .tokens = 64, .iterationMs = 10}};
  view.take(update);
  EXPECT_EQ(view.loss().notFiniteCount(), 1U);
  EXPECT_TRUE(view.findChild<QLabel*>(QStringLiteral("note-loss"))->text().contains(QStringLiteral("not finite")));
}

TEST(RunView, ComparesTheMeasuredWithThePredictedIteration) {
  EXPECT_EQ(differenceText(44, 41), QStringLiteral("+7\u2009%"));
  EXPECT_EQ(differenceText(41, 44), QStringLiteral("−7\u2009%"));
  RunView view;
  SessionUpdate update = updateOf(SessionPhase::Following, JobState::Running);
  update.state.predictedIterationMs = 40;
  update.steps = {{.step = 1, .loss = 2, .tokens = 64, .iterationMs = 80, .bubbleMs = 20}};
  view.take(update);
  const QString note = view.findChild<QLabel*>(QStringLiteral("note-iteration"))->text();
  EXPECT_TRUE(note.contains(QStringLiteral("+100"))) << note.toStdString();
  EXPECT_TRUE(note.startsWith(QStringLiteral("⚠"))) << note.toStdString();
}

TEST(StopText, SaysNodeByNodeWhatIsLeft) {
  const StopReport report{
      {{.node = "a", .stopped = true}, {.node = "b", .left = {12, 34}}, {.node = "c", .problem = "timed out"}}};
  const QStringList lines = stopText(report).split(QLatin1Char('\n'));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_TRUE(lines[0].startsWith(QStringLiteral("✓ a")));
  EXPECT_TRUE(lines[1].contains(QStringLiteral("12, 34")));
  EXPECT_TRUE(lines[2].contains(QStringLiteral("timed out")));
}

TEST(RunLog, FiltersByRankAndByWord) {
  RunLog log;
  log.append({{"a", 0, false, "loaded 3 files"}, {"b", 1, true, "slow disk"}, {"a", 0, false, "step 1"}});
  EXPECT_EQ(log.text().count(QLatin1Char('\n')), 2);
  log.findChild<QComboBox*>(QStringLiteral("logRank"))->setCurrentIndex(2);
  EXPECT_TRUE(log.text().contains(QStringLiteral("slow disk")));
  EXPECT_FALSE(log.text().contains(QStringLiteral("loaded")));
  log.findChild<QComboBox*>(QStringLiteral("logRank"))->setCurrentIndex(0);
  QTest::keyClicks(log.findChild<QLineEdit*>(QStringLiteral("logFilter")), QStringLiteral("STEP"));
  EXPECT_TRUE(log.text().endsWith(QStringLiteral("step 1")));
  log.append({{"a", 0, false, "step 2"}, {"a", 0, false, "other"}});
  EXPECT_EQ(log.text().count(QLatin1Char('\n')), 1);
}

TEST(PreflightView, ShowsHowMuchIsCopied) {
  PreflightView view;
  SessionState state;
  state.phase = SessionPhase::Starting;
  state.rows = {{.node = "a", .check = "reachable", .passed = true}};
  state.copies = {{"a", {1'000, 4'000}}, {"b", {0, 4'000}}};
  view.show(state);
  EXPECT_DOUBLE_EQ(copyFraction(state), 0.125);
  EXPECT_TRUE(copyText(state).contains(QStringLiteral("1 more"))) << copyText(state).toStdString();
  EXPECT_TRUE(view.isFolded());
}

}  // namespace
}  // namespace evenkeel::gui
