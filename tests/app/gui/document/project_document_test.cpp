// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/project_document.h"

#include <gtest/gtest.h>

#include <QDir>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

namespace evenkeel::gui {
namespace {

class DocumentTest : public ::testing::Test {
 protected:
  QTemporaryDir folder_;
  ProjectDocument document_{folder_.filePath(QStringLiteral("recovery"))};
};

TEST_F(DocumentTest, EveryEditIsOneUndoStepAndUndoGivesTheSameBytes) {
  const std::string before = toJson(document_.project()).dump();
  document_.edit(QStringLiteral("add"), [](Project& p) { p.cluster = *parseClusterShorthand("1x2:cpu"); });
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  const std::string after = toJson(document_.project()).dump();
  EXPECT_EQ(document_.undoStack().count(), 2);
  document_.undoStack().setIndex(0);
  EXPECT_EQ(toJson(document_.project()).dump(), before);
  document_.undoStack().setIndex(2);
  EXPECT_EQ(toJson(document_.project()).dump(), after);
}

TEST_F(DocumentTest, AnEditThatChangesNothingIsNoStepAndAGestureIsOne) {
  document_.edit(QStringLiteral("nothing"), [](Project&) {});
  EXPECT_EQ(document_.undoStack().count(), 0);
  for (int batch = 1; batch <= 5; ++batch) {
    document_.edit(QStringLiteral("batch"), [&](Project& p) { p.training.globalBatch = batch; }, QStringLiteral("batch"));
  }
  EXPECT_EQ(document_.undoStack().count(), 1);
  document_.undoStack().undo();
  EXPECT_FALSE(document_.project().training.globalBatch);
}

TEST_F(DocumentTest, TellsWhichPartsChangedAlsoOnUndo) {
  QSignalSpy spy(&document_, &ProjectDocument::changed);
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  document_.undoStack().undo();
  ASSERT_EQ(spy.count(), 2);
  for (const auto& arguments : spy) EXPECT_EQ(arguments.at(0).value<Parts>(), Parts(Part::Training));
}

TEST_F(DocumentTest, SavesAndOpensAndSaysWhatIsWrongWithAFile) {
  const QString path = folder_.filePath(QStringLiteral("a.evenkeel"));
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  EXPECT_TRUE(document_.isModified());
  ASSERT_TRUE(document_.saveAs(path));
  EXPECT_FALSE(document_.isModified());
  document_.startNew();
  EXPECT_TRUE(document_.path().isEmpty());
  ASSERT_TRUE(document_.open(path));
  EXPECT_EQ(document_.project().training.globalBatch, 13);
  EXPECT_FALSE(document_.open(folder_.filePath(QStringLiteral("missing.evenkeel"))));
  EXPECT_EQ(document_.project().training.globalBatch, 13) << "a failed open loses nothing";
}

TEST_F(DocumentTest, WhatWasUndoneToTheSavedStateNeedsNoRecovery) {
  QDir recovery(folder_.filePath(QStringLiteral("recovery")));
  recovery.setNameFilters({QStringLiteral("*.recovery")});
  const auto files = [&] {
    recovery.refresh();
    return recovery.entryList(QDir::Files).size();
  };
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  ASSERT_TRUE(QTest::qWaitFor([&] { return files() == 1; }, 10'000));
  document_.undoStack().undo();
  EXPECT_TRUE(QTest::qWaitFor([&] { return files() == 0; }, 10'000));
}

TEST_F(DocumentTest, WritesARecoveryFileThatAnotherWindowTakesOverOnlyWhenItsOwnerIsGone) {
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  QDir recovery(folder_.filePath(QStringLiteral("recovery")));
  recovery.setNameFilters({QStringLiteral("*.recovery")});
  ASSERT_TRUE(QTest::qWaitFor([&] { return recovery.exists() && recovery.entryList(QDir::Files).size() == 1; }, 10'000));
  EXPECT_TRUE(document_.recoverable().isEmpty()) << "this process lives";

  // What a killed window leaves: such a file, and a lock beside it that nobody holds any more.
  const QString file = recovery.filePath(recovery.entryList(QDir::Files).front());
  ASSERT_TRUE(QFile::copy(file, recovery.filePath(QStringLiteral("left.recovery"))));
  ASSERT_TRUE(QFile(recovery.filePath(QStringLiteral("left.owner"))).open(QIODevice::WriteOnly));
  ProjectDocument other(folder_.filePath(QStringLiteral("recovery")));
  const auto found = other.recoverable();
  ASSERT_EQ(found.size(), 1);
  ASSERT_TRUE(other.recover(found.front()));
  EXPECT_EQ(other.project().training.globalBatch, 13);
  EXPECT_TRUE(other.isModified());
}

TEST_F(DocumentTest, PassesOverWhatIsNoRecoveryFile) {
  QDir recovery(folder_.filePath(QStringLiteral("recovery")));
  ASSERT_TRUE(recovery.mkpath(QStringLiteral(".")));
  int file = 0;
  for (const char* text : {R"({"pid":999999,"path":7,"project":5})", R"({"pid":"abc"})", R"({"path":"","project":[]})", "[]", "7", "{", ""})
    ASSERT_TRUE(writeFileAtomically(recovery.filePath(QStringLiteral("odd%1.recovery").arg(file++)).toStdString(), text));
  EXPECT_TRUE(document_.recoverable().isEmpty());
  EXPECT_FALSE(document_.recover({recovery.filePath(QStringLiteral("odd0.recovery")), {}, {}}));
}

TEST_F(DocumentTest, KnowsThatAnotherWindowHasWrittenItsFile) {
  const QString path = folder_.filePath(QStringLiteral("p.evenkeel"));
  EXPECT_FALSE(document_.isChangedOnDisk());
  document_.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 13; });
  ASSERT_TRUE(document_.saveAs(path));
  EXPECT_FALSE(document_.isChangedOnDisk());
  ProjectDocument other(folder_.filePath(QStringLiteral("recovery")));
  ASSERT_TRUE(other.open(path));
  other.edit(QStringLiteral("batch"), [](Project& p) { p.training.globalBatch = 1001; });
  ASSERT_TRUE(other.saveAs(path));
  EXPECT_FALSE(other.isChangedOnDisk());
  EXPECT_TRUE(document_.isChangedOnDisk());
  ASSERT_TRUE(document_.open(path));
  EXPECT_FALSE(document_.isChangedOnDisk());
}

}  // namespace
}  // namespace evenkeel::gui
