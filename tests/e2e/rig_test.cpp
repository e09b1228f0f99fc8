// SPDX-License-Identifier: GPL-3.0-or-later
// Whole programs on emulated nodes (tests/support/node_rig.h): the plan of issue 8 over four of them, and a workstation that is cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/node_rig.h"
#include "tests/support/program.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OnTheRig : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
    if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox " + std::to_string(i * i % 97) + " jumps over the lazy dog\n";
    data_ = cli_.folder().file("text.txt", text);
  }

  /// A plan over nodes of the rig with so many devices each.
  std::string planFor(const NodeRig& rig, const std::vector<int>& devices) {
    Json cluster = {{"format", "evenkeel.cluster/1"}, {"nodes", Json::array()}};
    for (std::size_t i = 0; i < devices.size(); ++i) {
      cluster["nodes"].push_back({{"name", "n" + std::to_string(i)}, {"devices", {{"type", "cpu"}, {"count", devices[i]}}},
                                  {"ssh", {{"host", NodeRig::address(i)}, {"user", "root"}, {"identity", rig.identity()}, {"known_hosts", rig.knownHosts()}}}});
    }
    const std::string plan = (cli_.folder().path() / "plan.json").string();
    const ProgramResult planned = cli_.run({"plan", "--cluster", cli_.folder().file("cluster.json", cluster.dump()), "--model", "tiny-gpt", "--global-batch", "12",
                                            "--sequence-length", "32", "--planner", "uniform", "--out", plan});
    EXPECT_EQ(planned.exitCode, 0) << planned.err;
    return plan;
  }
  std::vector<std::string> launch(const std::string& plan, int steps, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"launch", plan, "--data", data_, "--steps", std::to_string(steps), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Where node K of the only run that was started keeps its journal.
  static std::filesystem::path journalOf(const NodeRig& rig, std::size_t node, const std::string& run) {
    return rig.home(node) / ".local/share/evenkeel/runs" / run / ("node-" + std::to_string(node)) / "journal.jsonl";
  }

  Cli cli_;
  std::string data_;
};

TEST_F(OnTheRig, FourUnlikeNodesTrainAsOneMachineDoesAlthoughTheWorkstationIsCutOff) {
  NodeRig rig({"n0", "n1", "n2", "n3"});
  const std::string plan = planFor(rig, {2, 1, 1, 2});
  const int steps = sweep(12, 100);
  Program follower(cli_.command(launch(plan, steps)), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("step 1 of ") != std::string::npos; })) << follower.soFar().err;
  const std::string said = follower.soFar().err;
  const std::string run = said.substr(said.find("run 2") + 4, 20);
  rig.unplugWorkstation(true);
  // The nodes go on among themselves while nobody follows.
  ASSERT_TRUE(NodeRig::awaitText(journalOf(rig, 0, run), "\"step\":" + std::to_string(isFullRun() ? 30 : 8))) << said;
  if (isFullRun()) ::poll(nullptr, 0, 20'000);  // what the issue asks for
  rig.unplugWorkstation(false);
  const ProgramResult result = follower.finish();
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json far = result.json();
  EXPECT_EQ(far["steps"], steps);
  EXPECT_EQ(far["losses"].size(), static_cast<std::size_t>(steps));
  const ProgramResult near = cli_.run(launch(plan, steps, {"--local"}));
  ASSERT_EQ(near.exitCode, 0) << near.err;
  EXPECT_EQ(far["losses"], near.json()["losses"]);
  for (std::size_t i = 0; i < rig.size(); ++i) EXPECT_THAT(rig.processes(i), IsEmpty());
}

// Megatron-DeepSpeed #126: the same libraries assumed everywhere.
TEST_F(OnTheRig, NodesWithoutLibTorchAndBlasTrainWithWhatTheyAreSent) {
  NodeRig rig({"n0", "n1"}, {.hidesLibraries = true});
  ASSERT_NE(rig.on(0, std::string(EVENKEEL_BIN_DIR) + "/evenkeel-worker --features >/dev/null 2>&1"), 0) << "the node has LibTorch";
  const std::string plan = planFor(rig, {1, 1});
  const ProgramResult first = cli_.run(launch(plan, 3));
  ASSERT_EQ(first.exitCode, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("copying to n1"));
  EXPECT_EQ(first.json()["losses"], cli_.run(launch(plan, 3, {"--local"})).json()["losses"]);
  // Half of one file is lost: only that one travels again, and only the rest of it where a part is left.
  ASSERT_EQ(rig.on(1, "cd /root/.cache/evenkeel && rm bundles/*/lib/libtorch_cpu.so* && largest=$(ls -S files | head -1) && rm files/$largest"), 0);
  const ProgramResult again = cli_.run(launch(plan, 3));
  ASSERT_EQ(again.exitCode, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("copying to n1"));
  EXPECT_THAT(again.err, ::testing::Not(HasSubstr("copying to n0")));
}

}  // namespace
}  // namespace evenkeel
