// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/login_desk.h"

#include <gtest/gtest.h>

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>
#include <fstream>
#include <future>

#include "app/gui/run/login_dialog.h"

#include "tests/support/temporary_directory.h"

namespace evenkeel::gui {
namespace {

LoginObstacle lockedKey(const char* file) { return {.kind = LoginObstacle::Kind::PassPhrase, .host = "b3", .identity = file}; }

/// Blocks until the desk has a question: whoever asks is on another thread.
LoginDesk::Question awaitQuestion(const LoginDesk& desk) {
  while (!desk.question()) std::this_thread::yield();
  return *desk.question();
}

TEST(LoginDesk, AsksOnceForAKeyThatTwoNodesShare) {
  LoginDesk desk;
  const std::stop_source stop;
  const auto ask = [&](const char* node) { return desk.settle(node, lockedKey("/key"), stop.get_token()); };
  auto first = std::async(std::launch::async, ask, "a"), second = std::async(std::launch::async, ask, "b");
  const auto question = awaitQuestion(desk);
  desk.giveSecret(question.id, "open sesame");
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_FALSE(desk.question());
  EXPECT_EQ(desk.secrets().at("/key"), "open sesame");
}

TEST(LoginDesk, AsksAgainAfterAWrongPassPhraseAndNotAfterADecline) {
  LoginDesk desk;
  const std::stop_source stop;
  LoginObstacle wrong = lockedKey("/key");
  wrong.wasWrong = true;
  auto asked = std::async(std::launch::async, [&] { return desk.settle("a", wrong, stop.get_token()); });
  const auto question = awaitQuestion(desk);
  EXPECT_TRUE(question.obstacle.wasWrong);
  desk.decline(question.id);
  EXPECT_FALSE(asked.get());
  EXPECT_FALSE(desk.settle("b", lockedKey("/key"), stop.get_token())) << "declined for all of this launch";
  desk.beginAnew();
  auto anew = std::async(std::launch::async, [&] { return desk.settle("a", lockedKey("/key"), stop.get_token()); });
  desk.giveSecret(awaitQuestion(desk).id, "right");
  EXPECT_TRUE(anew.get());
}

// zed #28601: a server that asks, and a window that does not.
TEST(LoginDialog, PutsPasswordsAndQuestionsToAPersonAndShowsOnlyWhatTheServerAllows) {
  LoginObstacle password{.kind = LoginObstacle::Kind::Password, .host = "b3", .user = "me"};
  LoginObstacle code{.kind = LoginObstacle::Kind::Question, .host = "b3", .user = "me", .question = "Verification code:", .isShown = true};
  LoginObstacle again = code;
  again.wasWrong = true;
  LoginDesk desk;
  const std::stop_source stop;
  for (const LoginObstacle& obstacle : {password, code, again}) {
    auto asked = std::async(std::launch::async, [&] { return desk.settle("the node", obstacle, stop.get_token()); });
    auto* dialog = new LoginDialog(awaitQuestion(desk), desk);
    auto* line = dialog->findChild<QLineEdit*>(QStringLiteral("loginPassPhrase"));
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->echoMode(), obstacle.isShown ? QLineEdit::Normal : QLineEdit::Password);
    EXPECT_EQ(line->accessibleName(), obstacle.kind == LoginObstacle::Kind::Password ? QStringLiteral("Password") : QStringLiteral("Verification code:"));
    EXPECT_EQ(dialog->findChild<QLabel*>(QStringLiteral("loginWrong")) != nullptr, obstacle.wasWrong);
    line->setText(obstacle.wasWrong ? QStringLiteral("222222") : QStringLiteral("111111"));
    QTest::mouseClick(dialog->findChild<QPushButton*>(QStringLiteral("loginAgree")), Qt::LeftButton);
    EXPECT_TRUE(asked.get());
  }
  EXPECT_EQ(desk.secrets().at("me@b3:22"), "111111");
  EXPECT_EQ(desk.secrets().at("me@b3:22 Verification code:"), "222222");
}

TEST(LoginDesk, NobodyWaitsAfterAStopOrAClose) {
  LoginDesk desk;
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] { return desk.settle("a", lockedKey("/key"), stop.get_token()); });
  awaitQuestion(desk);
  stop.request_stop();
  EXPECT_FALSE(stopped.get());
  EXPECT_FALSE(desk.question());
  const std::stop_source never;
  auto closed = std::async(std::launch::async, [&] { return desk.settle("a", lockedKey("/key"), never.get_token()); });
  awaitQuestion(desk);
  desk.close();
  EXPECT_FALSE(closed.get());
}

TEST(LoginDesk, AChangedHostKeyCannotBePassedOver) {
  LoginDesk desk;
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "known hosts";
  std::ofstream(file) << "old";
  const LoginObstacle changed{.kind = LoginObstacle::Kind::ChangedHostKey, .host = "b3", .knownHosts = file};
  EXPECT_FALSE(desk.settle("a", changed, {})) << "at once: there is nothing to wait for";
  ASSERT_TRUE(desk.question());
  desk.trust(desk.question()->id);
  std::string content;
  std::getline(std::ifstream(file), content);
  EXPECT_EQ(content, "old");
  EXPECT_FALSE(desk.settle("a", changed, {}));
}

TEST(LoginDesk, ATrustedKeyThatCannotBeWrittenIsAskedAboutAgainWithTheReason) {
  LoginDesk desk;
  const std::stop_source stop;
  LoginObstacle unknown{.host = "b3", .knownHosts = "/proc/no such folder/known_hosts", .knownHostsLine = "b3 ssh-ed25519 AAAA"};
  auto asked = std::async(std::launch::async, [&] { return desk.settle("a", unknown, stop.get_token()); });
  desk.trust(awaitQuestion(desk).id);
  const auto again = awaitQuestion(desk);
  EXPECT_NE(again.problem.find("cannot be written"), std::string::npos) << again.problem;
  desk.decline(again.id);
  EXPECT_FALSE(asked.get());
}

}  // namespace
}  // namespace evenkeel::gui
