// SPDX-License-Identifier: GPL-3.0-or-later
// Launching from the window over SSH: an sshd of the test's own, a host key that nobody has seen, a key with a pass phrase.
#include <gmock/gmock.h>

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QTreeWidget>

#include "app/gui/plot/curve_plot.h"
#include "app/gui/run/login_dialog.h"
#include "app/gui/run/run_page.h"
#include "tests/app/gui/run/run_fixture.h"
#include "tests/support/private_sshd.h"

namespace evenkeel::gui {
namespace {

using ::testing::HasSubstr;

constexpr int kLongMs = 90'000;  // a busy machine; nothing here waits for it to pass

class SshRunTest : public RealJobs {
 protected:
  void SetUp() override {
    RealJobs::SetUp();
    if (IsSkipped()) return;
    if (const std::string reason = PrivateSshd::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    std::string name = "/tmp/evenkeel-node-XXXXXX";  // sshd's SetEnv takes no spaces
    node_ = ::mkdtemp(name.data());
    sshd_ = std::make_unique<PrivateSshd>(
        node_, std::map<std::string, std::string>{{"XDG_DATA_HOME", node_ / "data"}, {"XDG_CACHE_HOME", node_ / "cache"}});
    target_ = {.host = "127.0.0.1",
               .port = sshd_->port(),
               .user = "root",
               .identity = sshd_->identity(),
               .knownHosts = sshd_->knownHosts()};
    openPage();
  }
  void TearDown() override {
    page_.reset();
    RealJobs::TearDown();
    sshd_.reset();
    std::error_code ignored;
    if (!node_.empty()) std::filesystem::remove_all(node_, ignored);
  }

  void openPage() {
    page_ = std::make_unique<RunPage>(workspace_, EVENKEEL_BIN_DIR);
    page_->resize(1200, 700);
    page_->show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(page_.get()));
  }
  void lockTheKey() {
    target_.identity = node_ / "locked";
    PrivateSshd::makeKey(target_.identity, "open sesame");
    std::filesystem::copy_file(target_.identity + ".pub", sshd_->file("authorized_keys"),
                               std::filesystem::copy_options::overwrite_existing);
  }
  void launch() {
    Plan remote = plan();
    remote.cluster.nodes.front().ssh = target_;
    document_.edit(QStringLiteral("plan"), [&](Project& project) { project.plans.push_back({"by hand", remote}); });
    EXPECT_FALSE(find<QCheckBox>("runLocal")->isChecked());
    find<QLineEdit>("runData")->setText(QString::fromStdString(data().string()));
    find<QSpinBox>("runSteps")->setValue(1'000'000);
    EXPECT_TRUE(QTest::qWaitFor([this] { return find<QPushButton>("runLaunch")->isEnabled(); }, kLongMs));
    QTest::mouseClick(find<QPushButton>("runLaunch"), Qt::LeftButton);
  }
  template <class W>
  W* find(const char* name) {
    return page_->findChild<W*>(QString::fromLatin1(name));
  }
  std::string label(const char* name) { return find<QLabel>(name)->text().toStdString(); }
  /// The next dialog; null if none comes.
  LoginDialog* awaitDialog(const QString& title) {
    LoginDialog* found = nullptr;
    (void)QTest::qWaitFor(
        [&] {
          for (LoginDialog* dialog : page_->findChildren<LoginDialog*>()) {
            if (dialog->isVisible() && dialog->windowTitle() == title) found = dialog;
          }
          return found != nullptr;
        },
        kLongMs);
    return found;
  }
  static void press(LoginDialog* dialog, const char* button) {
    QTest::mouseClick(dialog->findChild<QPushButton*>(QString::fromLatin1(button)), Qt::LeftButton);
  }
  bool awaitCurve() {
    return QTest::qWaitFor([&] { return find<CurvePlot>("lossCurve")->points().size() >= 2; }, kLongMs);
  }

  std::filesystem::path node_;
  std::unique_ptr<PrivateSshd> sshd_;
  SshTarget target_;
  ProjectDocument document_{QString::fromStdString((directory_.path() / "recovery").string())};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  std::unique_ptr<RunPage> page_;
};

TEST_F(SshRunTest, AsksForTrustAndPassPhraseRunsAndIsFoundAgainByAnotherWindow) {
  lockTheKey();
  target_.knownHosts = node_ / "nothing known";
  launch();
  LoginDialog* unknown = awaitDialog(QStringLiteral("Unknown host key"));
  ASSERT_NE(unknown, nullptr);
  EXPECT_THAT(unknown->findChild<QLabel*>(QStringLiteral("loginShownKey"))->text().toStdString(), HasSubstr("SHA256:"));
  EXPECT_TRUE(unknown->findChild<QPushButton*>(QStringLiteral("loginDecline"))->isDefault()) << "trust is never one Return away";
  EXPECT_FALSE(std::filesystem::exists(target_.knownHosts)) << "nothing is trusted yet";
  press(unknown, "loginAgree");
  for (const char* typed : {"a guess", "open sesame"}) {
    LoginDialog* locked = awaitDialog(QStringLiteral("Pass phrase"));
    ASSERT_NE(locked, nullptr);
    EXPECT_EQ(locked->findChild<QLabel*>(QStringLiteral("loginWrong")) != nullptr, typed != std::string("a guess"));
    auto* line = locked->findChild<QLineEdit*>(QStringLiteral("loginPassPhrase"));
    EXPECT_EQ(line->echoMode(), QLineEdit::Password);
    QTest::keyClicks(line, QString::fromLatin1(typed));
    press(locked, "loginAgree");
  }
  ASSERT_TRUE(awaitCurve()) << label("outcomeText");
  const auto rows = Launcher::open()->runs();
  ASSERT_EQ(rows->size(), 1U);
  const std::string run = rows->front().run;
  EXPECT_THAT(document_.project().runs, ::testing::ElementsAre(run));

  page_.reset();  // as closing the window does
  openPage();
  page_->open(run);
  LoginDialog* locked = awaitDialog(QStringLiteral("Pass phrase"));
  ASSERT_NE(locked, nullptr) << "a pass phrase lives as long as its window";
  QTest::keyClicks(locked->findChild<QLineEdit*>(QStringLiteral("loginPassPhrase")), QStringLiteral("open sesame"));
  QTest::keyClick(locked, Qt::Key_Return);
  ASSERT_TRUE(awaitCurve()) << label("outcomeText");
  const std::size_t before = find<CurvePlot>("lossCurve")->points().size();
  ASSERT_TRUE(QTest::qWaitFor([&] { return find<CurvePlot>("lossCurve")->points().size() > before; }, kLongMs)) << "it goes on";
  QTest::mouseClick(find<QPushButton>("runStop"), Qt::LeftButton);
  QTest::mouseClick(find<QMessageBox>("stopQuestion")->findChild<QPushButton*>(QStringLiteral("stopNow")), Qt::LeftButton);
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return label("outcomeText").find("nothing of the run is left") != std::string::npos; }, kLongMs))
      << label("outcomeText");
}

TEST_F(SshRunTest, StopsAtAChangedHostKeyWithoutAWayPastIt) {
  PrivateSshd::makeKey(sshd_->file("another"));
  std::filesystem::rename(sshd_->file("another"), sshd_->hostKey());
  launch();
  LoginDialog* changed = awaitDialog(QStringLiteral("Host key changed"));
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(changed->findChild<QPushButton*>(QStringLiteral("loginAgree")), nullptr);
  EXPECT_NE(changed->findChild<QLabel*>(QStringLiteral("loginKnownKey"))->text(),
            changed->findChild<QLabel*>(QStringLiteral("loginShownKey"))->text());
  EXPECT_THAT(changed->findChild<QLabel*>(QStringLiteral("loginCommand"))->text().toStdString(), HasSubstr("ssh-keygen -R"));
  press(changed, "loginDecline");
  ASSERT_TRUE(QTest::qWaitFor([&] { return label("runState").find("not started") != std::string::npos; }, kLongMs));
  EXPECT_THAT(find<QTreeWidget>("preflightRows")->topLevelItem(0)->text(2).toStdString(), HasSubstr("has changed"));
  EXPECT_TRUE(Launcher::open()->runs()->empty());
}

TEST_F(SshRunTest, DecliningAnUnknownKeyStartsNothingAndSaysHowToGoOn) {
  target_.knownHosts = node_ / "nothing known";
  launch();
  LoginDialog* unknown = awaitDialog(QStringLiteral("Unknown host key"));
  ASSERT_NE(unknown, nullptr);
  QTest::keyClick(unknown, Qt::Key_Escape);
  ASSERT_TRUE(QTest::qWaitFor([&] { return label("runState").find("not started") != std::string::npos; }, kLongMs));
  auto* rows = find<QTreeWidget>("preflightRows");
  EXPECT_THAT(rows->topLevelItem(0)->text(2).toStdString(), HasSubstr("is unknown"));
  EXPECT_THAT(rows->topLevelItem(0)->text(3).toStdString(), HasSubstr("ssh-keyscan"));
  EXPECT_FALSE(std::filesystem::exists(target_.knownHosts));
}

}  // namespace
}  // namespace evenkeel::gui
