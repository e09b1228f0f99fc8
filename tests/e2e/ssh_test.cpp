// SPDX-License-Identifier: GPL-3.0-or-later
// The demo over SSH to a private sshd on 127.0.0.1: the same losses as locally, a cut connection, unknown and changed host keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/private_sshd.h"
#include "tests/support/processes.h"
#include "tests/support/program.h"
#include "tests/support/shared_bundles.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OverSsh : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
    if (const std::string reason = PrivateSshd::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    std::filesystem::create_directories(sshFolder_.path() / "server");
    // The far side keeps its runs and bundles apart from the near side, as another machine would.
    sshd_ = std::make_unique<PrivateSshd>(sshFolder_.path() / "server",
                                          std::map<std::string, std::string>{{"XDG_DATA_HOME", (sshFolder_.path() / "far").string()},
                                                                             {"XDG_CACHE_HOME", (sshFolder_.path() / "far-cache").string()}});
    shareBundles(cli_.folder().path() / "cache" / "evenkeel");
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox " + std::to_string(i * i % 97) + " jumps over the lazy dog\n";
    data_ = cli_.folder().file("text.txt", text);
    plan_ = planWith(sshd_->knownHosts(), "plan.json");
  }

  /// The demo's two unlike nodes behind the private sshd, planned.
  std::string planWith(const std::string& knownHosts, const std::string& name) {
    Json cluster = *readJsonFile(std::filesystem::path(EVENKEEL_SOURCE_DIR) / "resources/demo/cluster.json");
    for (Json& node : cluster["nodes"]) {
      node["ssh"] = {{"host", "127.0.0.1"}, {"port", sshd_->port()}, {"user", "root"}, {"identity", sshd_->identity()}, {"known_hosts", knownHosts}};
    }
    const std::string file = cli_.folder().file("cluster-" + name, cluster.dump());
    const std::string plan = (cli_.folder().path() / name).string();
    const ProgramResult result = cli_.run({"plan", "--cluster", file, "--model", "tiny-gpt", "--global-batch", "13", "--sequence-length", "32", "--out", plan});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    return plan;
  }
  std::vector<std::string> launch(const std::string& plan, const std::string& steps, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"launch", plan, "--data", data_, "--steps", steps, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<int> farProcesses() const { return processesNaming(sshFolder_.path().string()); }

  Cli cli_;
  TemporaryDirectory sshFolder_{TemporaryDirectory::Name::Plain};  // SetEnv takes no spaces
  std::unique_ptr<PrivateSshd> sshd_;
  std::string data_, plan_;
};

TEST_F(OverSsh, TheDemoHasTheLossesThatItHasLocally) {
  const ProgramResult far = cli_.run(launch(plan_, "6"));
  ASSERT_EQ(far.exitCode, 0) << far.err;
  const ProgramResult near = cli_.run(launch(plan_, "6", {"--local"}));
  ASSERT_EQ(near.exitCode, 0) << near.err;
  EXPECT_EQ(far.json()["losses"], near.json()["losses"]);
  EXPECT_EQ(far.json()["losses"].size(), 6U);
  EXPECT_THAT(farProcesses(), IsEmpty());
}

// From a host's name to a plan: what discover writes, plan and launch take.
TEST_F(OverSsh, DiscoverMakesAClusterOfTheHostThatItLooksAt) {
  const std::string found = (cli_.folder().path() / "found.json").string();
  const ProgramResult looked = cli_.run({"discover", "--hosts", "root@127.0.0.1:" + std::to_string(sshd_->port()), "--identity", sshd_->identity(),
                                         "--known-hosts", sshd_->knownHosts(), "--out", found, "--json"});
  ASSERT_EQ(looked.exitCode, 0) << looked.err;
  EXPECT_THAT(looked.err, HasSubstr("127.0.0.1: clock: agrees"));
  const Json cluster = *readJsonFile(found);
  EXPECT_EQ(cluster, looked.json()["cluster"]);
  EXPECT_EQ(cluster["nodes"][0]["ssh"]["port"], sshd_->port());
  const std::string plan = (cli_.folder().path() / "found-plan.json").string();
  const ProgramResult planned = cli_.run({"plan", "--cluster", found, "--model", "tiny-gpt", "--global-batch", "8", "--sequence-length", "32", "--out", plan});
  ASSERT_EQ(planned.exitCode, 0) << planned.err;
  const ProgramResult trained = cli_.run(launch(plan, "2"));
  EXPECT_EQ(trained.exitCode, 0) << trained.err;
  const ProgramResult unknown = cli_.run({"discover", "--hosts", "root@127.0.0.1:" + std::to_string(sshd_->port()), "--identity", sshd_->identity(),
                                          "--known-hosts", cli_.folder().file("nobody", ""), "--out", found});
  EXPECT_EQ(unknown.exitCode, 1);
  EXPECT_THAT(unknown.err, HasSubstr("SHA256:"));
}

TEST_F(OverSsh, AfterACutConnectionTheTailGoesOnWithoutGapOrDoubleStep) {
  Program follower(cli_.command(launch(plan_, "24")), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("step 1 of 24") != std::string::npos; })) << follower.soFar().err;
  sshd_->cutConnections();
  const ProgramResult result = follower.finish();
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("lost the connection"));
  const Json cut = result.json();
  EXPECT_EQ(cut["losses"].size(), 24U);
  EXPECT_EQ(cut["steps"], 24);
  EXPECT_EQ(cut["losses"], cli_.run(launch(plan_, "24", {"--local"})).json()["losses"]);
}

// t3code PR #12137: a hidden yes/no prompt hung (field-faults).
TEST_F(OverSsh, AnUnknownHostKeyStopsTheLaunchWithItsFingerprintAndTheWayOut) {
  const std::string plan = planWith(cli_.folder().file("empty-known-hosts", ""), "unknown.json");
  const ProgramResult result = cli_.run(launch(plan, "5"));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.err, HasSubstr("SHA256:"));
  EXPECT_THAT(result.err, HasSubstr("ssh-keyscan"));
  EXPECT_THAT(farProcesses(), IsEmpty());
}

TEST_F(OverSsh, AChangedHostKeyStopsTheLaunchAndShowsBothKeys) {
  const std::string other = (sshFolder_.path() / "other").string();
  PrivateSshd::makeKey(other);
  std::istringstream publicKey(*readFile(other + ".pub"));
  std::string type, key;
  publicKey >> type >> key;
  const std::string known = cli_.folder().file("changed-known-hosts", "[127.0.0.1]:" + std::to_string(sshd_->port()) + " " + type + " " + key + "\n");
  const ProgramResult result = cli_.run(launch(planWith(known, "changed.json"), "5"));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.err, HasSubstr("changed"));
  std::set<std::string> fingerprints;
  for (std::size_t at = 0; (at = result.err.find("SHA256:", at)) != std::string::npos; ++at) fingerprints.insert(result.err.substr(at, 50));
  EXPECT_EQ(fingerprints.size(), 2U) << result.err;
  EXPECT_THAT(farProcesses(), IsEmpty());
}

TEST_F(OverSsh, StopLeavesNothingOnTheNodes) {
  const ProgramResult started = cli_.run(launch(plan_, "100000", {"--detach"}));
  ASSERT_EQ(started.exitCode, 0) << started.err;
  EXPECT_FALSE(farProcesses().empty());
  const ProgramResult stopped = cli_.run({"stop", started.json()["run"]});
  EXPECT_EQ(stopped.exitCode, 0) << stopped.err;
  EXPECT_THAT(farProcesses(), IsEmpty());
}

}  // namespace
}  // namespace evenkeel
