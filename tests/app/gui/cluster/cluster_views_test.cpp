// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSpinBox>
#include <QTableView>
#include <QToolButton>
#include <QTreeView>

#include "app/gui/cluster/device_edits.h"
#include "app/gui/cluster/machine_palette.h"
#include "app/gui/cluster/matrix_model.h"
#include "app/gui/cluster/outline_model.h"
#include "tests/app/gui/cluster/cluster_page_fixture.h"

namespace evenkeel::gui {
namespace {

using ::testing::ElementsAre;
constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;

void type(QLineEdit* edit, const char* words) {
  edit->setFocus();
  edit->selectAll();
  QTest::keyClicks(edit, QString::fromLatin1(words));
  QTest::keyClick(edit, Qt::Key_Return);
}

TEST(PaletteModel, KeepsTheRulesAndDragsDevices) {
  PaletteModel model;
  const QAbstractItemModelTester tester(&model, kFatal);
  model.setCount(4);
  int types = 0;
  for (int vendor = 0; vendor < model.rowCount(); ++vendor) {
    const QModelIndex parent = model.index(vendor, 0);
    EXPECT_TRUE(model.textOf(parent).isEmpty());
    for (int row = 0; row < model.rowCount(parent); ++row) {
      const QModelIndex index = model.index(row, 0, parent);
      const std::unique_ptr<QMimeData> data(model.mimeData({index}));
      const QString words = QString::fromUtf8(data->data(kMachineMime));
      if (words == QStringLiteral("switch")) continue;
      ++types;
      EXPECT_TRUE(parseDevices(words.toStdString())) << words.toStdString();
      EXPECT_TRUE(words.startsWith(QStringLiteral("4 x ")));
    }
  }
  EXPECT_EQ(types, static_cast<int>(deviceCatalogue().size()));
}

TEST_F(ClusterPageTest, ThePaletteFiltersAndItsChoiceIsWhatNAdds) {
  auto* view = page_.findChild<QTreeView*>(QStringLiteral("paletteView"));
  page_.findChild<QLineEdit*>(QStringLiteral("paletteFilter"))->setText(QStringLiteral("4090"));
  ASSERT_EQ(view->model()->rowCount(), 1);
  view->setCurrentIndex(view->model()->index(0, 0, view->model()->index(0, 0)));
  page_.findChild<QSpinBox*>(QStringLiteral("paletteCount"))->setValue(3);
  key(Qt::Key_N);
  ASSERT_EQ(cluster().nodes.size(), 1u);
  EXPECT_EQ(devicesText(cluster(), cluster().nodes.front()), "3 x RTX4090");
}

TEST_F(ClusterPageTest, TheOutlineKeepsTheRulesOfItsModelThroughEdits) {
  OutlineModel model(document_);
  const QAbstractItemModelTester tester(&model, kFatal);
  draw("3x2:cpu,2x4:T4");
  document_.edit(QStringLiteral("x"), [](Project& project) {
    const std::string hub = addSwitch(project, {});
    (void)connectItems(project, hub, "cpu-0");
    (void)connectItems(project, "cpu-1", "t4-0");
  });
  EXPECT_EQ(model.rowCount(model.index(OutlineModel::Machines, 0)), 5);
  EXPECT_EQ(model.rowCount(model.index(OutlineModel::Connections, 0)), 2);
  document_.edit(QStringLiteral("x"), [](Project& project) { removeItems(project, {"cpu-1", "cpu-2"}); });
  EXPECT_EQ(model.rowCount(model.index(OutlineModel::Machines, 0)), 3);
  EXPECT_TRUE(model.setData(model.indexOf("t4-1"), QStringLiteral("inference"), Qt::EditRole));
  EXPECT_EQ(cluster().nodes.back().name, "inference");
  EXPECT_FALSE(model.setData(model.indexOf("inference"), QStringLiteral("cpu-0"), Qt::EditRole));
  document_.undoStack().setIndex(0);
  EXPECT_EQ(model.rowCount(model.index(OutlineModel::Machines, 0)), 0);
}

TEST_F(ClusterPageTest, OutlineAndCanvasShareOneSelectionAndTheOutlineDeletes) {
  draw("3x2:cpu");
  auto* outline = page_.findChild<QTreeView*>(QStringLiteral("outline"));
  click(pointOf("cpu-1"));
  ASSERT_EQ(outline->selectionModel()->selectedRows().size(), 1);
  EXPECT_EQ(outline->selectionModel()->selectedRows().front().data().toString(), QStringLiteral("cpu-1"));
  const QModelIndex machines = outline->model()->index(0, 0);
  outline->selectionModel()->select(outline->model()->index(0, 0, machines),
                                    QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  EXPECT_THAT(selection_.items(), ElementsAre("cpu-0"));
  outline->setFocus();
  outline->setCurrentIndex(outline->model()->index(1, 0, machines));
  QTest::keyClick(outline, Qt::Key_F2);
  auto* edit = outline->findChild<QLineEdit*>();
  ASSERT_NE(edit, nullptr);
  type(edit, "big");
  EXPECT_TRUE(QTest::qWaitFor([&] { return cluster().nodes[1].name == "big"; }));
  EXPECT_THAT(selection_.items(), ElementsAre("big"));
  QTest::keyClick(outline, Qt::Key_Delete);
  EXPECT_EQ(cluster().nodes.size(), 2u);
}

TEST_F(ClusterPageTest, TheMatrixShowsAndDrawsLinksAndTakesThemAway) {
  MatrixModel model(document_);
  const QAbstractItemModelTester tester(&model, kFatal);
  draw("2x2:cpu,1x4:T4");
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.data(model.index(0, 1)).toString(), QStringLiteral("1.25"));
  EXPECT_EQ(model.data(model.index(2, 2)).toString(), QStringLiteral("16"));
  EXPECT_TRUE(model.setData(model.index(0, 2), QStringLiteral("40")));
  ASSERT_EQ(cluster().links.size(), 1u);
  EXPECT_EQ(gbs(cluster().links.front().spec.bandwidth), 40);
  EXPECT_EQ(model.data(model.index(2, 0)).toString(), QStringLiteral("40")) << "both directions";
  EXPECT_FALSE(model.setData(model.index(0, 2), QStringLiteral("fast")));
  EXPECT_FALSE(model.setData(model.index(0, 2), QStringLiteral("-1")));
  EXPECT_TRUE(model.setData(model.index(2, 0), QString()));
  EXPECT_TRUE(cluster().links.empty());
  EXPECT_TRUE(model.setData(model.index(1, 1), QStringLiteral("3")));
  EXPECT_EQ(gbs(cluster().nodes[1].intra.bandwidth), 3);
}

TEST_F(ClusterPageTest, TheInspectorWritesOneFieldToAllSelectedMachinesAsOneStep) {
  draw("1x8:A100-80-SXM,1x4:T4");
  selection_.setItems({"a100-80-sxm-0", "t4-0"});
  auto* bandwidth = field<QLineEdit>("intraBandwidth");
  EXPECT_TRUE(bandwidth->text().isEmpty());
  EXPECT_EQ(bandwidth->placeholderText(), QStringLiteral("(mixed)"));
  const int steps = document_.undoStack().count();
  type(bandwidth, "123");
  EXPECT_EQ(document_.undoStack().count(), steps + 1);
  for (const Node& node : cluster().nodes) EXPECT_EQ(gbs(node.intra.bandwidth), 123);
  EXPECT_EQ(bandwidth->text(), QStringLiteral("123"));
  EXPECT_TRUE(bandwidth->font().bold()) << "unlike the device table";
  field<QToolButton>("intraBandwidthReset")->click();
  EXPECT_EQ(gbs(cluster().nodes[0].intra.bandwidth), 300);
  EXPECT_EQ(gbs(cluster().nodes[1].intra.bandwidth), 16);
  EXPECT_TRUE(field<QToolButton>("intraBandwidthReset")->isHidden());
  type(bandwidth, "nonsense");
  EXPECT_EQ(gbs(cluster().nodes[0].intra.bandwidth), 300);
}

TEST_F(ClusterPageTest, TheInspectorChangesTypeCountAndMixedDevices) {
  draw("2x8:A100-80-SXM");
  selection_.setItems({"a100-80-sxm-0", "a100-80-sxm-1"});
  field<QSpinBox>("machineCount")->setValue(4);
  EXPECT_EQ(cluster().deviceCount(), 8);
  auto* box = field<QComboBox>("machineType");
  box->setCurrentText(QStringLiteral("T4"));
  emit box->activated(box->currentIndex());
  EXPECT_EQ(cluster().typeOf({1, 3}).name, "T4");
  EXPECT_EQ(gbs(cluster().nodes[0].intra.bandwidth), 16) << "the links follow the type";
  selection_.setItems({"a100-80-sxm-0"});
  type(field<QLineEdit>("machineDevices"), "2 x T4 + 1 x cpu@0.5");
  EXPECT_EQ(devicesText(cluster(), cluster().nodes[0]), "2 x T4 + 1 x cpu@0.5");
  EXPECT_EQ(cluster().nodes[1].devices.size(), 4u);
}

TEST_F(ClusterPageTest, FiguresOfTheDeviceTableShowTheirSource) {
  draw("1x8:A100-80-SXM");
  selection_.setItems({"a100-80-sxm-0"});
  EXPECT_TRUE(field<QLabel>("machinePeak")->toolTip().startsWith(QStringLiteral("Device table: ")));
  EXPECT_TRUE(field<QLineEdit>("intraBandwidth")->toolTip().contains(QStringLiteral("http")));
}

TEST_F(ClusterPageTest, SshIsOffUntilThereIsAHostAndGoesWithIt) {
  draw("1x2:cpu");
  selection_.setItems({"cpu-0"});
  EXPECT_FALSE(field<QLineEdit>("sshUser")->isEnabled());
  type(field<QLineEdit>("sshHost"), "b3");
  EXPECT_TRUE(field<QLineEdit>("sshUser")->isEnabled());
  type(field<QLineEdit>("sshUser"), "mila");
  field<QSpinBox>("sshPort")->setValue(2222);
  EXPECT_EQ(cluster().nodes[0].ssh.user, "mila");
  EXPECT_EQ(cluster().nodes[0].ssh.port, 2222);
  auto* host = field<QLineEdit>("sshHost");
  host->setFocus();
  host->selectAll();
  QTest::keyClick(host, Qt::Key_Backspace);
  QTest::keyClick(host, Qt::Key_Return);
  EXPECT_EQ(cluster().nodes[0].ssh, SshTarget{});
}

TEST_F(ClusterPageTest, LinksAndSwitchesHaveTheirFields) {
  draw("2x2:cpu");
  document_.edit(QStringLiteral("x"), [](Project& project) {
    addSwitch(project, {});
    (void)connectItems(project, "cpu-0", "cpu-1");
  });
  selection_.setItems({"cpu-0|cpu-1", "switch-0"});
  EXPECT_EQ(field<QLabel>("inspectorTitle")->text(), QStringLiteral("1 switch, 1 link"));
  type(field<QLineEdit>("linkBandwidth"), "7.5");
  type(field<QLineEdit>("linkLatency"), "3");
  type(field<QLineEdit>("switchBandwidth"), "50");
  EXPECT_EQ(gbs(cluster().links.front().spec.bandwidth), 7.5);
  EXPECT_EQ(microseconds(cluster().links.front().spec.latency), 3);
  EXPECT_EQ(gbs(cluster().switches.front().bandwidth), 50);
  type(field<QLineEdit>("switchName"), "spine");
  EXPECT_EQ(cluster().switches.front().name, "spine");
}

}  // namespace
}  // namespace evenkeel::gui
