// SPDX-License-Identifier: GPL-3.0-or-later
// SshHost against an sshd of our own.
#include "launcher/ssh/ssh_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "launcher/ssh/local_host.h"
#include "launcher/ssh/waits.h"
#include "tests/support/private_sshd.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kLimit = 60s;  // that nothing reaches unless it hangs

class SshHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PrivateSshd::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    noise_ = directory_.path() / "noise.sh";
    sshd_ = std::make_unique<PrivateSshd>(directory_.path());
  }
  [[nodiscard]] SshAddress address() const {
    return {.host = "127.0.0.1",
            .port = sshd_->port(),
            .user = "root",
            .identity = sshd_->identity(),
            .knownHosts = sshd_->knownHosts()};
  }
  [[nodiscard]] std::unique_ptr<Host> connected() const {
    auto host = connectSsh("b3", address(), kLimit);
    EXPECT_TRUE(host) << host.error().text();
    return host ? *std::move(host) : nullptr;
  }
  [[nodiscard]] static std::string fingerprintOf(const std::string& publicKey) {
    LocalHost here("here");
    const std::string line = run(here, {.argv = {"ssh-keygen", "-lf", publicKey}})->out;  // "256 SHA256:... comment (ED25519)"
    return line.substr(4, line.find(' ', 4) - 4);
  }

  TemporaryDirectory directory_;
  std::filesystem::path noise_;
  std::unique_ptr<PrivateSshd> sshd_;
};

/// Waits until nothing is left in a folder: what runs behind a cut connection takes its time to notice.
void awaitEmpty(const std::filesystem::path& folder) {
  const OwnedFd changes(::inotify_init1(IN_CLOEXEC));
  ::inotify_add_watch(changes.get(), folder.c_str(), IN_DELETE | IN_MOVED_FROM);
  std::array<char, 4096> events;
  while (!std::filesystem::is_empty(folder)) {
    pollfd change{changes.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&change, 1, 30'000), 1) << "something is left in " << folder;
    ASSERT_GT(::read(changes.get(), events.data(), events.size()), 0);
  }
}

TEST_F(SshHostTest, LogsInByKeyAndRunsCommands) {
  const auto host = connected();
  ASSERT_TRUE(host);
  const auto output = run(*host, {.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}, .deadline = kLimit});
  ASSERT_TRUE(output) << output.error().text();
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->ending.exitStatus, 3);
  EXPECT_EQ(host->address(), "127.0.0.1");
  EXPECT_EQ(host->addressOfThisEnd(), "127.0.0.1");
}

TEST_F(SshHostTest, NamesTheSignalThatEndedACommand) {
  const auto host = connected();
  ASSERT_TRUE(host);
  EXPECT_EQ(run(*host, {.argv = {"sh", "-c", "kill -s KILL $$"}, .deadline = kLimit})->ending.text(), "killed by SIGKILL");
}

TEST_F(SshHostTest, PassesArgumentsAsTheyAre) {
  const auto host = connected();
  ASSERT_TRUE(host);
  EXPECT_EQ(run(*host, {.argv = {"printf", "%s|", "it's $HOME; \"größe\"", "", "a\nb"}, .deadline = kLimit})->out,
            "it's $HOME; \"größe\"||a\nb|");
}

// DeepSpeed #4907: "exit status 255" and nothing else.
TEST_F(SshHostTest, SaysThatAProgramIsMissingThere) {
  const auto host = connected();
  ASSERT_TRUE(host);
  const auto output = run(*host, {.argv = {"/nowhere/program"}, .deadline = kLimit});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->ending.exitStatus, 127);
  EXPECT_THAT(output->err, HasSubstr("/nowhere/program"));
}

TEST_F(SshHostTest, KeepsWhatAShellPrintsAtItsStartOutOfTheOutput) {
  const TemporaryDirectory other;
  const std::string noise = "/tmp/evenkeel-noise-" + std::to_string(::getpid()) + ".sh";  // SetEnv takes no odd names
  std::ofstream(noise) << "echo welcome to b3\n";
  const PrivateSshd loud(other.path(), {{"BASH_ENV", noise}});
  auto host = connectSsh(
      "b3",
      {.host = "127.0.0.1", .port = loud.port(), .user = "root", .identity = loud.identity(), .knownHosts = loud.knownHosts()},
      kLimit);
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(run(**host, {.argv = {"echo", "mine"}, .deadline = kLimit})->out, "mine\n");
  std::filesystem::remove(noise);
}

TEST_F(SshHostTest, RefusesAnUnknownHostKeyAndShowsItsFingerprint) {
  SshAddress stranger = address();
  stranger.knownHosts = directory_.path() / "empty";
  std::ofstream(stranger.knownHosts).close();
  const auto host = connectSsh("b3", stranger, kLimit);
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code, Error::Code::Failed);
  EXPECT_THAT(host.error().what, HasSubstr(fingerprintOf(sshd_->hostKey() + ".pub")));
  // the remedy is a command that works as it stands
  const std::string& remedy = host.error().remedy;
  LocalHost here("here");
  const std::string command = remedy.substr(remedy.find("ssh-keyscan"));
  ASSERT_TRUE(run(here, {.argv = {"sh", "-c", command}, .deadline = kLimit}));
  EXPECT_TRUE(connectSsh("b3", stranger, kLimit));
}

TEST_F(SshHostTest, StopsAtAChangedHostKeyAndShowsBoth) {
  const std::string before = fingerprintOf(sshd_->hostKey() + ".pub");
  PrivateSshd::makeKey(sshd_->file("another"));
  const std::string now = fingerprintOf(sshd_->file("another.pub"));
  std::filesystem::rename(sshd_->file("another"), sshd_->hostKey());
  const auto host = connectSsh("b3", address(), kLimit);
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().what, AllOf(HasSubstr("has changed"), HasSubstr(before), HasSubstr(now)));
  EXPECT_THAT(host.error().remedy, HasSubstr("ssh-keygen -R '[127.0.0.1]:"));
}

// skypilot #6002: a missing key file was reported as "ssh failed". zed #28601: an encrypted key was unusable without a word.
TEST_F(SshHostTest, SaysWhatIsWrongWithTheKey) {
  SshAddress wrong = address();
  wrong.identity = directory_.path() / "missing";
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(),
              AllOf(HasSubstr("refuses the login"), HasSubstr("missing (no such file")));
  wrong.identity = directory_.path() / "locked";
  PrivateSshd::makeKey(wrong.identity, "pass phrase");
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(),
              AllOf(HasSubstr("needs a pass phrase: ssh-add"), HasSubstr("ssh -p")));
  wrong.identity = directory_.path() / "stranger";
  PrivateSshd::makeKey(wrong.identity);
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(), HasSubstr("refuses the login"));
}

TEST_F(SshHostTest, TrustsAnUnknownKeyWhenToldToAndNoOther) {
  SshAddress stranger = address();
  stranger.knownHosts = directory_.path() / "new folder" / "known hosts";
  LoginHelp help;
  ASSERT_FALSE(connectSsh("b3", stranger, kLimit, {}, &help));
  ASSERT_TRUE(help.obstacle);
  EXPECT_EQ(help.obstacle->kind, LoginObstacle::Kind::UnknownHostKey);
  EXPECT_THAT(help.obstacle->shownKey, HasSubstr(fingerprintOf(sshd_->hostKey() + ".pub")));
  EXPECT_EQ(help.obstacle->port, sshd_->port());
  ASSERT_TRUE(trustHostKey(*help.obstacle));
  EXPECT_TRUE(connectSsh("b3", stranger, kLimit, {}, &help));
  EXPECT_FALSE(help.obstacle);
  PrivateSshd::makeKey(sshd_->file("another"));
  std::filesystem::rename(sshd_->file("another"), sshd_->hostKey());
  ASSERT_FALSE(connectSsh("b3", stranger, kLimit, {}, &help));
  ASSERT_TRUE(help.obstacle);
  EXPECT_EQ(help.obstacle->kind, LoginObstacle::Kind::ChangedHostKey);
  EXPECT_EQ(help.obstacle->knownHostsLine, "") << "there is nothing to trust";
}

TEST_F(SshHostTest, OpensALockedKeyWithItsPassPhraseOnly) {
  SshAddress locked = address();
  locked.identity = directory_.path() / "locked";
  PrivateSshd::makeKey(locked.identity, "pass phrase");
  std::filesystem::copy_file(locked.identity + ".pub", sshd_->file("authorized_keys"),
                             std::filesystem::copy_options::overwrite_existing);
  LoginHelp help;
  ASSERT_FALSE(connectSsh("b3", locked, kLimit, {}, &help));
  ASSERT_TRUE(help.obstacle);
  EXPECT_EQ(help.obstacle->kind, LoginObstacle::Kind::PassPhrase);
  EXPECT_EQ(help.obstacle->identity, locked.identity);
  EXPECT_FALSE(help.obstacle->wasWrong);
  help.secrets[locked.identity] = "another";
  EXPECT_THAT(connectSsh("b3", locked, kLimit, {}, &help).error().text(), HasSubstr("does not open it"));
  EXPECT_TRUE(help.obstacle->wasWrong);
  help.secrets[locked.identity] = "pass phrase";
  EXPECT_TRUE(connectSsh("b3", locked, kLimit, {}, &help));
  EXPECT_FALSE(help.obstacle);
}

TEST_F(SshHostTest, SaysWhyAHostCannotBeReached) {
  SshAddress wrong = address();
  wrong.port = 1;
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(), HasSubstr("b3: 127.0.0.1 port 1: Connection refused"));
  wrong.host = "no-such-host.invalid";
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(), HasSubstr("cannot find the address of no-such-host.invalid"));
  wrong.host = "::1";
  EXPECT_THAT(connectSsh("b3", wrong, kLimit).error().text(), HasSubstr("::1 port 1"));
}

TEST_F(SshHostTest, GivesUpASilentHostAtTheDeadline) {
  sshd_->fallSilent();
  const auto host = connectSsh("b3", address(), 300ms);
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code, Error::Code::Unreachable);
  EXPECT_THAT(host.error().text(), HasSubstr("0.3 s"));
}

TEST_F(SshHostTest, GivesUpACommandAtItsDeadlineAndGoesOn) {
  const auto host = connected();
  ASSERT_TRUE(host);
  EXPECT_THAT(run(*host, {.argv = {"sleep", "5"}, .deadline = 300ms}).error().text(), HasSubstr("has not ended within 0.3 s"));
  EXPECT_EQ(run(*host, {.argv = {"echo", "still here"}, .deadline = kLimit})->out, "still here\n");
}

TEST_F(SshHostTest, UploadsTwentyMegabytesUnharmed) {
  const auto host = connected();
  ASSERT_TRUE(host);
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < 20'000'000; ++i) bytes += std::to_string(i * 2654435761U);
  const std::string path = directory_.path() / "there";
  const auto put = upload(*host, {.bytes = bytes, .path = path});
  ASSERT_TRUE(put) << put.error().text();
  EXPECT_EQ(sha256(*readFile(path)), sha256(bytes));
}

TEST_F(SshHostTest, ReadsALotOfOutput) {
  const auto host = connected();
  ASSERT_TRUE(host);
  std::size_t lines = 0;
  const auto output = followLines(*host, {.argv = {"seq", "1000000"}, .deadline = kLimit}, [&](std::string_view) { ++lines; });
  ASSERT_TRUE(output) << output.error().text();
  EXPECT_EQ(lines, 1'000'000U);
}

TEST_F(SshHostTest, NoticesACutConnection) {
  const auto host = connected();
  ASSERT_TRUE(host);
  const auto output = followLines(*host, {.argv = {"sh", "-c", "echo x; exec sleep 5"}, .deadline = kLimit},
                                  [&](std::string_view) { sshd_->cutConnections(); });
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, Error::Code::Unreachable);
  EXPECT_FALSE(run(*host, {.argv = {"true"}, .deadline = kLimit}));
}

TEST_F(SshHostTest, LeavesNoPartOfACutUpload) {
  const auto host = connected();
  ASSERT_TRUE(host);
  const std::filesystem::path there = directory_.path() / "there";
  std::filesystem::create_directory(there);
  const auto put =
      upload(*host, {.bytes = std::string(20'000'000, 'x'), .path = there / "file", .onProgress = [&](std::uint64_t done) {
                       if (done > 5'000'000) sshd_->cutConnections();
                     }});
  EXPECT_FALSE(put);
  awaitEmpty(there);
}

}  // namespace
}  // namespace evenkeel
