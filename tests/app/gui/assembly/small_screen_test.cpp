// SPDX-License-Identifier: GPL-3.0-or-later
// A laptop's screen: 1280 x 800, less a panel. Nothing is cut off there, on any page, whatever is going on.
#include <gmock/gmock.h>

#include <QAbstractButton>
#include <QDir>
#include <QLineEdit>
#include <QTabBar>
#include <QTemporaryDir>

#include "tests/app/gui/assembly/whole_window.h"
#include "tests/app/gui/plan/demo.h"

namespace evenkeel::gui {
namespace {

constexpr QSize kScreen(1280, 760);

class SmallScreen : public ::testing::Test {
 protected:
  SmallScreen() {
    Project project = demoProject();
    const Plan plan = demoPlan(project, "uniform");
    project.plans.push_back({"uniform, made before somebody changed the cluster", plan});
    project.training.globalBatch *= 2;  // the plan is stale: the pages say so
    shown_.document().startNew(std::move(project));
    shown_.window().resize(kScreen);
  }

  /// What a person may press and cannot see whole.
  [[nodiscard]] std::vector<std::string> cutOff() {
    std::vector<std::string> cut;
    const QRect inside = shown_.window().rect();
    for (const QAbstractButton* button : shown_.window().findChildren<QAbstractButton*>()) {
      if (!button->isVisible() || button->visibleRegion().isEmpty()) continue;  // of a list that scrolls
      const QRect place(button->mapTo(&shown_.window(), QPoint()), button->size());
      if (!inside.contains(place)) cut.push_back((button->objectName() + QLatin1Char(' ') + button->text()).toStdString());
    }
    return cut;
  }

  QTemporaryDir folder_;
  WholeWindow shown_{folder_.path()};
};

TEST_F(SmallScreen, HoldsEveryPage) {
  Workspace& workspace = shown_.window().workspace();
  workspace.showCommand(QStringLiteral("evenkeel-cli plan a-project-with-a-long-name.evenkeel --planner optimal --time-limit 60 --save"));
  emit workspace.jobStarted(1, QStringLiteral("Search with hexiscale"), [] {});
  emit workspace.jobProgressed(1, 0.5, QStringLiteral("12 % above the bound, 4,123,456 plans evaluated, 12 s"));
  for (const auto& [mode, name] : {std::pair{Mode::Start, "Start"}, {Mode::Cluster, "Cluster"}, {Mode::Model, "Model"}, {Mode::Plan, "Plan"},
                                   {Mode::Compare, "Compare"}, {Mode::Run, "Run"}}) {
    SCOPED_TRACE(name);
    shown_.window().enter(mode);
    QCoreApplication::processEvents();
    ASSERT_TRUE(shown_.isShown(mode));
    EXPECT_LE(shown_.window().minimumSizeHint().width(), kScreen.width());
    EXPECT_LE(shown_.window().minimumSizeHint().height(), kScreen.height());
    EXPECT_EQ(shown_.window().size(), kScreen);
    EXPECT_THAT(cutOff(), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace evenkeel::gui
