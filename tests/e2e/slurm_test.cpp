// SPDX-License-Identifier: GPL-3.0-or-later
// Whole programs and a real Slurm (tests/support/slurm_rig.h): handed over on a login node, over SSH and from there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program.h"
#include "tests/support/shared_bundles.h"
#include "tests/support/slurm_rig.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ByCommandLine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker")) GTEST_SKIP() << "built without LibTorch";
    if (const std::string reason = SlurmRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    rig_ = std::make_unique<NodeRig>(std::vector<std::string>{SlurmRig::kLogin});
    slurm_ = std::make_unique<SlurmRig>(*rig_, std::vector<std::string>{"c1", "c2"});
    ASSERT_TRUE(slurm_->isUp());
    cli_ = std::make_unique<Cli>(std::map<std::string, std::string>{{"SLURM_CONF", slurm_->configuration()}});
    shareBundles(cli_->folder().path() / "cache" / "evenkeel");
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox " + std::to_string(i * i % 97) + " jumps over the lazy dog\n";
    data_ = cli_->folder().file("text.txt", text);
    plan_ = (cli_->folder().path() / "plan.json").string();
    const ProgramResult planned = cli_->run({"plan", "--cluster", "2x1:cpu", "--model", "tiny-gpt", "--global-batch", "8", "--sequence-length", "32",
                                             "--planner", "uniform", "--out", plan_});
    ASSERT_EQ(planned.exitCode, 0) << planned.err;
  }
  void TearDown() override {
    rig_.reset();
    slurm_.reset();
  }
  [[nodiscard]] ProgramResult launch(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"launch", plan_, "--data", data_, "--steps", "4", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli_->run(arguments);
  }
  [[nodiscard]] std::vector<std::string> overSsh() const {
    return {"--slurm", "--slurm-login", "root@" + NodeRig::address(0), "--identity", rig_->identity(), "--known-hosts", rig_->knownHosts(),
            "--slurm-option", "partition=debug", "--slurm-option", "time=10"};
  }

  std::unique_ptr<NodeRig> rig_;
  std::unique_ptr<SlurmRig> slurm_;
  std::unique_ptr<Cli> cli_;
  std::string data_, plan_;
};

TEST_F(ByCommandLine, ASlurmJobTrainsAsThisMachineDoes) {
  const ProgramResult far = launch(overSsh());
  ASSERT_EQ(far.exitCode, 0) << far.err;
  EXPECT_THAT(far.err, ::testing::AllOf(HasSubstr("Slurm has taken the run as job"), HasSubstr("in partition debug")));
  const ProgramResult near = launch({"--local"});
  ASSERT_EQ(near.exitCode, 0) << near.err;
  EXPECT_EQ(far.json()["losses"], near.json()["losses"]);
  EXPECT_EQ(slurm_->jobs(), 0);
  EXPECT_THAT(rig_->processes(0), IsEmpty());
}

TEST_F(ByCommandLine, OnTheLoginNodeAJobIsLeftAndComeBackTo) {
  const std::string shared = (cli_->folder().path() / "shared").string();
  slurm_->occupy(1);
  std::vector<std::string> here = {"--slurm", "--slurm-folder", shared, "--detach"};
  const ProgramResult started = launch(here);
  ASSERT_EQ(started.exitCode, 0) << started.err;
  const std::string run = started.json()["run"];
  EXPECT_EQ(started.json()["state"], "preparing");
  EXPECT_THAT(cli_->run({"status", run}).out, HasSubstr("is pending"));
  rig_->on(0, "scancel -n neighbour");
  const ProgramResult attached = cli_->run({"attach", run, "--json"});
  ASSERT_EQ(attached.exitCode, 0) << attached.err;
  EXPECT_EQ(attached.json()["losses"].size(), 4U);
  EXPECT_EQ(cli_->run({"logs", run, "--rank", "1"}).exitCode, 0);
  EXPECT_TRUE(std::filesystem::exists(shared + "/evenkeel/runs/" + run + "/slurm.sh"));
}

TEST_F(ByCommandLine, TheCommandsOfASlurmJobCanBeReadWithoutARun) {
  auto arguments = overSsh();
  arguments.emplace_back("--dry-run");
  const ProgramResult shown = launch(arguments);
  ASSERT_EQ(shown.exitCode, 0) << shown.err;
  std::string all;
  const Json printed = shown.json();
  for (const Json& line : printed["commands"]) all += line.get<std::string>() + "\n";
  EXPECT_THAT(all, ::testing::AllOf(HasSubstr("sbatch --parsable --job-name=evenkeel-"), HasSubstr("--partition=debug"), HasSubstr("--time=10"), HasSubstr("evenkeel-agent step --dir"),
                                    HasSubstr("scancel JOB")));
  EXPECT_EQ(slurm_->jobs(), 0);
  EXPECT_THAT(launch({"--slurm", "--local"}).err, HasSubstr("exclude each other"));
  EXPECT_THAT(launch({"--slurm-option", "x=y"}).err, HasSubstr("add --slurm"));
  EXPECT_THAT(launch({"--slurm", "--slurm-option", "nodes=7"}).err, HasSubstr("is set by the plan"));
}

}  // namespace
}  // namespace evenkeel
