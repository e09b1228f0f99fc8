// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/model/model_page.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QListWidget>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

TEST(UnitRows, SumToTheParametersOfTheModel) {
  const Model model = *modelFromArgument("gpt3-1.3b");
  Training training = resolveTraining({}, *parseClusterShorthand("1x1:A100-80-SXM"), model);
  std::int64_t sum = 0;
  for (const UnitRow& row : unitRows(model, training)) sum += row.count * row.parameters;
  EXPECT_EQ(sum - model.paddedVocab() * model.hidden, storedParameters(model, 0, model.unitCount())) << "a tied embedding stands in two units";
}

TEST(UnitRows, OfATableOfLayersBearTheirNames) {
  Model model;
  model.layers = 3;
  model.hidden = model.context = 8;
  model.heads = model.kvHeads = 1;
  model.headDim = model.ffn = model.vocab = model.vocabMultiple = 1;
  model.tiedEmbeddings = false;
  model.opaque = OpaqueLayers{{.name = "stem", .parameters = 1}, {.name = "", .parameters = 10, .forward = {1e9}}, {.parameters = 2}};
  LayerTable table;
  table.setRows(unitRows(model, resolveTraining({}, *parseClusterShorthand("1x1:A100-80-SXM"), model)));
  const auto text = [&](int row, int column) { return table.data(table.index(row, column), Qt::DisplayRole).toString(); };
  ASSERT_EQ(table.rowCount(), 4);
  EXPECT_EQ(text(0, LayerTable::Kind), QStringLiteral("stem"));
  EXPECT_EQ(text(1, LayerTable::Kind), QStringLiteral("Layer"));
  EXPECT_EQ(text(1, LayerTable::Count), QStringLiteral("3"));
  EXPECT_EQ(text(3, LayerTable::Parameters), QStringLiteral("33"));
}

TEST(LayerTable, KeepsTheRulesOfItsModel) {
  LayerTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const Model model = *modelFromArgument("tiny-gpt");
  table.setRows(unitRows(model, resolveTraining({}, *parseClusterShorthand("1x1:cpu"), model)));
  EXPECT_EQ(table.rowCount(), 5);
  EXPECT_EQ(table.data(table.index(1, LayerTable::Count), Qt::DisplayRole).toString(), QStringLiteral("8"));
  table.setRows({});
  EXPECT_EQ(table.rowCount(), 0);
}

class ModelPageTest : public ::testing::Test {
 protected:
  ModelPageTest() { page_.show(); }
  QTemporaryDir folder_;
  ProjectDocument document_{folder_.filePath(QStringLiteral("recovery"))};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  ModelPage page_{workspace_};
};

TEST_F(ModelPageTest, APresetAndABatchAreEditsThatUndoTakesBack) {
  auto* presets = page_.findChild<QListWidget*>(QStringLiteral("presets"));
  presets->setCurrentItem(presets->findItems(QStringLiteral("gpt3-13b"), Qt::MatchExactly).front());
  ASSERT_TRUE(document_.project().model);
  EXPECT_EQ(document_.project().model->name, "gpt3-13b");
  auto* batch = page_.findChild<QSpinBox*>(QStringLiteral("globalBatch"));
  batch->selectAll();
  QTest::keyClicks(batch, QStringLiteral("13"));
  EXPECT_EQ(document_.project().training.globalBatch, 13);
  document_.undoStack().undo();
  EXPECT_FALSE(document_.project().training.globalBatch);
  document_.undoStack().undo();
  EXPECT_FALSE(document_.project().model);
  EXPECT_TRUE(presets->selectedItems().isEmpty());
}

TEST_F(ModelPageTest, TheFocusAloneChoosesNothing) {
  page_.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&page_));
  page_.findChild<QListWidget*>(QStringLiteral("presets"))->setFocus();
  QCoreApplication::processEvents();
  EXPECT_FALSE(document_.project().model);
  EXPECT_EQ(document_.undoStack().count(), 0);
}

TEST_F(ModelPageTest, WhatIsLeftOpenShowsWhatItComesTo) {
  document_.edit(QStringLiteral("x"), [](Project& p) {
    p.cluster = *parseClusterShorthand("1x8:V100-32-SXM2");
    p.model = *modelFromArgument("gpt3-13b");
  });
  EXPECT_EQ(page_.findChild<QComboBox*>(QStringLiteral("precision"))->itemText(0), QStringLiteral("automatic: fp16"));
  const QString fit = page_.findChild<QLabel*>(QStringLiteral("fitLine"))->text();
  EXPECT_TRUE(fit.contains(QStringLiteral("fits no single device"))) << fit.toStdString();
  EXPECT_TRUE(page_.findChild<QLabel*>(QStringLiteral("granularityLine"))->text().contains(QStringLiteral("times finer")));
}

TEST(QuantityText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(timeText({1.8365}), QStringLiteral("1.84\u2009s"));
  EXPECT_EQ(timeText({0.0005}), QStringLiteral("500\u2009µs"));
  EXPECT_EQ(countText(6.738e9), QStringLiteral("6.74\u2009G"));
  EXPECT_EQ(bytesText(Bytes{std::int64_t{27} << 30}), QStringLiteral("27\u2009GiB"));
  EXPECT_EQ(exactText(6'738'415'616), QStringLiteral("6\u2009738\u2009415\u2009616"));
  EXPECT_EQ(exactText(-1234), QStringLiteral("-1\u2009234"));
}

}  // namespace
}  // namespace evenkeel::gui
