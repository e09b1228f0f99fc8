// SPDX-License-Identifier: GPL-3.0-or-later
// Logins on emulated nodes: jump hosts, proxy commands, passwords, questions, and what is said where it cannot work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/sha256.h"
#include "launcher/ssh/ssh_host.h"
#include "tests/support/node_rig.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto kLimit = 30s;

class RigSshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    ::unsetenv("SSH_AUTH_SOCK");
  }
  static SshAddress addressOf(const NodeRig& rig, std::size_t node) {
    return {.host = NodeRig::address(node), .user = "root", .identity = rig.identity(), .knownHosts = rig.knownHosts()};
  }
  static std::string nameOf(Host& host) { return run(host, {.argv = {"uname", "-n"}, .deadline = kLimit})->out; }
};

TEST_F(RigSshTest, ReachesANodeThroughOneAndThroughTwoJumpHosts) {
  const NodeRig rig({"gate", "inner", "far"});
  // from here only the gate is to be seen
  ASSERT_EQ(std::system("ip route add blackhole 10.77.0.12/32 && ip route add blackhole 10.77.0.13/32"), 0);
  SshAddress far = addressOf(rig, 2);
  ASSERT_FALSE(connectSsh("far", far, 3s));
  far.proxyJump = "root@" + NodeRig::address(0);
  auto host = connectSsh("far", far, kLimit);
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(nameOf(**host), "far\n");
  EXPECT_EQ((*host)->address(), "") << "nobody here knows the address behind a jump";
  far.proxyJump = "root@" + NodeRig::address(0) + ":22,root@" + NodeRig::address(1);
  host = connectSsh("far", far, kLimit);
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(nameOf(**host), "far\n");
  // 20 MB in each direction arrive whole
  std::string bytes(20'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13U);
  ASSERT_TRUE(upload(**host, {.bytes = bytes, .path = "/root/big"}));
  Sha256 hash;
  ASSERT_TRUE((*host)->execute(
      {.argv = {"cat", "/root/big"}, .onOutput = [&](std::string_view piece) { hash.update(piece); }, .deadline = kLimit}));
  EXPECT_EQ(hash.finish(), sha256(bytes));
}

// A smaller share of what bench_launcher measures (8 hosts x 8).
TEST_F(RigSshTest, ManyConnectionsAtOnceAllComeUp) {
  const NodeRig rig({"a", "b", "c", "d"});
  std::vector<std::string> names(rig.size() * 4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < names.size(); ++i) {
      threads.emplace_back([&, i] {
        auto host = connectSsh("node", addressOf(rig, i % rig.size()), kLimit);
        names[i] = host ? nameOf(**host) : host.error().text();
      });
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], std::string(1, static_cast<char>('a' + i % 4)) + "\n");
}

TEST_F(RigSshTest, NamesWhatAJumpHostCannotDo) {
  const NodeRig rig({"gate", "far"});
  SshAddress far = addressOf(rig, 1);
  far.proxyJump = "root@" + NodeRig::address(0);
  rig.refuse(1, true);
  EXPECT_THAT(connectSsh("far", far, kLimit).error().text(),
              AllOf(HasSubstr("far: jump host 10.77.0.11 cannot connect to 10.77.0.12 port 22"), HasSubstr("refused")));
  rig.refuse(0, true);
  EXPECT_THAT(connectSsh("far", far, kLimit).error().text(),
              AllOf(HasSubstr("far, jump host 10.77.0.11: 10.77.0.11 port 22: Connection refused")));
  far.proxyJump = "root@" + NodeRig::address(0) + ":99999";
  EXPECT_THAT(connectSsh("far", far, kLimit).error().text(), HasSubstr("no port"));
}

TEST_F(RigSshTest, LogsInWithAPasswordAnAnswerAndNeverWithoutBeingGivenIt) {
  const NodeRig rig({"a"}, {.takesPasswords = true});
  SshAddress address = addressOf(rig, 0);
  const auto headless = connectSsh("a", address, kLimit);
  ASSERT_FALSE(headless);
  EXPECT_THAT(headless.error().text(),
              AllOf(HasSubstr("a: 10.77.0.11 port 22 refuses the login"), HasSubstr("nobody is here"), HasSubstr("ssh-copy-id")));
  LoginHelp help;
  ASSERT_FALSE(connectSsh("a", address, kLimit, {}, &help));
  ASSERT_TRUE(help.obstacle);
  EXPECT_EQ(help.obstacle->kind, LoginObstacle::Kind::Question);
  EXPECT_EQ(help.obstacle->question, "Password:");
  EXPECT_FALSE(help.obstacle->isShown);
  EXPECT_EQ(help.obstacle->secretName(), "root@10.77.0.11:22 Password:");
  const LoginObstacle asked = *help.obstacle;
  help.secrets[asked.secretName()] = "wrong";
  const auto wrong = connectSsh("a", address, kLimit, {}, &help);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text().find("wrong\""), std::string::npos) << "what was typed is never said";
  ASSERT_TRUE(help.obstacle);
  EXPECT_TRUE(help.obstacle->wasWrong);
  help.secrets[asked.secretName()] = NodeRig::kPassword;
  const auto host = connectSsh("a", address, kLimit, {}, &help);
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(nameOf(**host), "a\n");
  // a server that takes passwords only
  ASSERT_EQ(std::system(("sed -i 's/KbdInteractiveAuthentication yes/KbdInteractiveAuthentication no/' " +
                         rig.tools(0).parent_path().string() + "/sshd_config")
                            .c_str()),
            0);
  rig.refuse(0, true);
  rig.refuse(0, false);
  ASSERT_FALSE(connectSsh("a", address, kLimit, {}, &help));
  ASSERT_TRUE(help.obstacle);
  EXPECT_EQ(help.obstacle->kind, LoginObstacle::Kind::Password);
  EXPECT_EQ(help.obstacle->secretName(), "root@10.77.0.11:22");
  help.secrets[help.obstacle->secretName()] = NodeRig::kPassword;
  EXPECT_TRUE(connectSsh("a", address, kLimit, {}, &help));
}

// skypilot #6002, DeepSpeed #4907: "ssh failed". One line each: host, cause, remedy.
TEST_F(RigSshTest, SaysHostCauseAndRemedyForEachOfTheUsualTroubles) {
  const NodeRig rig({"a"});
  const SshAddress good = addressOf(rig, 0);
  const std::string locked = rig.identity() + "-locked", stranger = rig.identity() + "-stranger";
  PrivateSshd::makeKey(locked, "pass phrase");
  PrivateSshd::makeKey(stranger);
  const auto with = [&](const std::function<void(SshAddress&)>& change) {
    SshAddress address = good;
    change(address);
    return address;
  };
  LoginHelp wrongPassPhrase;
  wrongPassPhrase.secrets[locked] = "another";
  rig.on(0, "cp " + rig.identity() + ".pub /root/unused");
  struct Trouble {
    SshAddress address;
    LoginHelp* help;
    const char *cause, *remedy;
    Error::Code code;
  };
  const Trouble troubles[] = {
      {with([&](SshAddress& a) { a.identity = locked; }), &wrongPassPhrase, "the pass phrase does not open it", "ssh -i ",
       Error::Code::Failed},
      {with([&](SshAddress& a) { a.identity = locked; }), nullptr, "it needs a pass phrase: ssh-add ", "ssh -i ",
       Error::Code::Failed},
      {with([&](SshAddress& a) { a.identity = "/nowhere/key"; }), nullptr, "/nowhere/key (no such file, or not readable)",
       "ssh -i /nowhere/key", Error::Code::Failed},
      {with([&](SshAddress& a) { a.identity = stranger; }), nullptr, "refuses the login; tried: ", "without a question: ssh",
       Error::Code::Failed},
      {with([&](SshAddress& a) { a.port = 1; }), nullptr, "10.77.0.11 port 1: Connection refused", "does sshd run there",
       Error::Code::Unreachable},
      {with([&](SshAddress& a) { a.host = "203.0.113.9"; }), nullptr, "203.0.113.9 port 22: Network is unreachable",
       "is the address right", Error::Code::Unreachable},
      {with([&](SshAddress& a) { a.host = "10.77.0.99"; }), nullptr, "10.77.0.99 port 22", "?", Error::Code::Unreachable},
      {with([&](SshAddress& a) { a.host = "no-such-host.invalid"; }), nullptr, "cannot find the address of no-such-host.invalid",
       "getent hosts", Error::Code::Unreachable},
      {with([&](SshAddress& a) { a.knownHosts = "/dev/null"; }), nullptr, "is unknown: ssh-ed25519 SHA256:", "ssh-keyscan",
       Error::Code::Failed},
  };
  for (const Trouble& trouble : troubles) {
    const auto host = connectSsh("the node", trouble.address, 4s, {}, trouble.help);
    ASSERT_FALSE(host) << trouble.cause;
    EXPECT_EQ(host.error().where, "the node");
    EXPECT_THAT(host.error().what, HasSubstr(trouble.cause));
    EXPECT_THAT(host.error().remedy, HasSubstr(trouble.remedy)) << trouble.cause;
    EXPECT_EQ(host.error().code, trouble.code) << trouble.cause;
    EXPECT_EQ(host.error().text().find('\n'), std::string::npos) << trouble.cause;
  }
  rig.changeHostKey(0);
  const auto changed = connectSsh("the node", good, kLimit);
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().text(),
              AllOf(HasSubstr("the node: the key of 10.77.0.11 port 22 has changed"), HasSubstr("ssh-keygen -R 10.77.0.11")));
  rig.writeKnownHosts();
  std::ofstream(rig.home(0) / ".bashrc") << "echo This account is closed.\nexit 1\n";
  auto closed = connectSsh("the node", good, kLimit);
  ASSERT_TRUE(closed) << closed.error().text();
  const auto refused = run(**closed, {.argv = {"true"}, .deadline = kLimit});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("the node: its login shell"), HasSubstr("This account is closed."), HasSubstr(".bashrc")));
}

}  // namespace
}  // namespace evenkeel
