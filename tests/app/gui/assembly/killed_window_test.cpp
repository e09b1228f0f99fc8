// SPDX-License-Identifier: GPL-3.0-or-later
// Kill -9 at any moment loses nothing that is older than two seconds.
#include <gtest/gtest.h>

#include <QProcess>
#include <QPushButton>
#include <QTemporaryDir>
#include <random>

#include "tests/app/gui/assembly/whole_window.h"
#include "tests/support/sweep.h"

namespace evenkeel::gui {
namespace {

struct Edit {
  int number = 0;
  qint64 at = 0;  // ms of the steady clock
};

/// What a window that edits has told until it was killed `delay` ms after its first edit.
std::vector<Edit> editsOfAKilledWindow(const QString& folder, int delay) {
  QProcess process;
  process.start(QStringLiteral(EVENKEEL_WINDOW_TO_KILL), {folder});
  QByteArray told;
  std::vector<Edit> edits;
  const auto read = [&] {
    told += process.readAllStandardOutput();
    for (qsizetype end = told.indexOf('\n'); end >= 0; end = told.indexOf('\n')) {
      const QList<QByteArray> words = told.left(end).split(' ');
      edits.push_back({words.at(0).toInt(), words.at(1).toLongLong()});
      told.remove(0, end + 1);
    }
  };
  while (edits.empty() || edits.back().at < edits.front().at + delay) {
    if (!process.waitForReadyRead(60'000)) break;
    read();
  }
  process.kill();  // SIGKILL
  process.waitForFinished();
  read();
  return edits;
}

TEST(KilledWindow, LosesNothingThatIsTwoSecondsOld) {
  std::mt19937 random(7);
  for (int round = 0; round < sweep(3, 30); ++round) {
    const QTemporaryDir folder;
    const int delay = std::uniform_int_distribution(1500, 4000)(random);
    const std::vector<Edit> edits = editsOfAKilledWindow(folder.path(), delay);
    ASSERT_GT(edits.size(), 10U);

    WholeWindow next(folder.path());
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&next.window()));
    auto* restore = next.window().findChild<QPushButton*>(QStringLiteral("startRestore"));
    int recovered = 0;
    if (restore != nullptr) {
      QTest::mouseClick(restore, Qt::LeftButton);
      recovered = static_cast<int>(next.project().training.globalBatch.value_or(0));
      EXPECT_EQ(next.project().cluster.deviceCount(), 64);
    }
    for (const Edit& edit : edits) {
      if (edit.at <= edits.back().at - 2000) {
        EXPECT_GE(recovered, edit.number) << "killed after " << delay << " ms";
      }
    }
    EXPECT_LE(recovered, edits.back().number + 1) << "the last line may have been lost with its process";
  }
}

}  // namespace
}  // namespace evenkeel::gui
