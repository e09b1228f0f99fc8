// SPDX-License-Identifier: GPL-3.0-or-later
// What of Slurm can be tried without one: names, options, words, ends.
#include "launcher/job/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/agent/slurm_queue.h"
#include "launcher/job/outcome.h"
#include "launcher/job/records.h"
#include "launcher/ssh/fake_host.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

LaunchRequest requestOn(const std::string& cluster, const std::vector<std::string>& devices) {
  LaunchRequest request;
  std::vector<int> cuts{0};
  for (std::size_t i = 1; i < devices.size(); ++i) cuts.push_back(static_cast<int>(i));
  cuts.push_back(18);
  request.plan = planOf(*parseClusterShorthand(cluster), *modelFromArgument("tiny-gpt"), {{8, 2, devices, cuts}});
  request.slurm.emplace();
  return request;
}

TEST(Slurm, MatchesNodesByTheirNamesOrTakesAny) {
  const auto layouts = layoutOf(requestOn("2x1:cpu", {"cpu-0/0", "cpu-1/0"}).plan);
  EXPECT_EQ(matchNodes(layouts, {"a", "cpu-0", "cpu-1"}), (SlurmMatch{.byName = true, .unknownNames = {}}));
  EXPECT_EQ(matchNodes(layouts, {"a", "b"}), (SlurmMatch{.byName = false, .unknownNames = {}}));
  EXPECT_THAT(matchNodes(layouts, {"cpu-0", "b"}).unknownNames, ElementsAre("cpu-1"));
}

TEST(Slurm, AsksForWhatThePlanUsesAndAPersonWins) {
  LaunchRequest request = requestOn("2x2:cpu", {"cpu-0/0", "cpu-0/1", "cpu-1/0"});
  const auto layouts = layoutOf(request.plan);
  EXPECT_THAT(sbatchOptions(request, layouts, {.byName = true, .unknownNames = {}}),
              ElementsAre("--no-requeue", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2", "--nodelist=cpu-0,cpu-1"));
  request.slurm->options = {{"partition", "a b"}, {"cpus-per-task", "16"}, {"exclusive", ""}};
  EXPECT_THAT(sbatchOptions(request, layouts, {}), ElementsAre("--no-requeue", "--nodes=2", "--ntasks-per-node=1", "--partition=a b", "--cpus-per-task=16", "--exclusive"));
  request = requestOn("1x8:A100-80-SXM", {"a100-80-sxm-0/0", "a100-80-sxm-0/3"});
  EXPECT_THAT(sbatchOptions(request, layoutOf(request.plan), {}), ElementsAre("--no-requeue", "--nodes=1", "--ntasks-per-node=1", "--gpus-per-node=2"));
}

TEST(Slurm, RefusesOptionsThatThePlanDecides) {
  for (const char* name : {"nodes", "array", "wrap", "output", "", "-p", "Partition"}) {
    const auto objection = objectionToOptions({.login = {}, .options = {{name, "1"}}, .folder = {}});
    ASSERT_TRUE(objection) << name;
    EXPECT_THAT(objection->where, HasSubstr("--slurm-option"));
  }
  EXPECT_FALSE(objectionToOptions({.login = {}, .options = {{"partition", "gpu"}, {"exclusive", ""}}, .folder = {}}));
}

TEST(Slurm, UnlikeNodesNeedNames) {
  const LaunchRequest alike = requestOn("1x1:cpu,1x1:cpu@0.5", {"cpu-0/0", "cpu-1/0"});
  EXPECT_FALSE(objectionToAnyNodes(alike.plan, layoutOf(alike.plan))) << "any core can sleep";
  const LaunchRequest unlike = requestOn("1x1:A100-80-SXM,1x1:V100-32-SXM2", {"a100-80-sxm-0/0", "v100-32-sxm2-0/0"});
  const auto objection = objectionToAnyNodes(unlike.plan, layoutOf(unlike.plan));
  ASSERT_TRUE(objection);
  EXPECT_THAT(objection->text(), HasSubstr("has 1 x A100-80-SXM and v100-32-sxm2-0 has 1 x V100-32-SXM2"));
}

TEST(Slurm, TheScriptSurvivesOddPaths) {
  EXPECT_EQ(slurmScript("/a b/agent", "/it's/run", 3),
            "#!/bin/sh\nexec srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --cpu-bind=none --mem=0 --mpi=none --wait=0 --kill-on-bad-exit=0 "
            "'/a b/agent' step --dir '/it'\\''s/run'\n");
}

TEST(Slurm, ReadsWhatSqueuePrints) {
  EXPECT_EQ(parseQueueState("PENDING|Resources|2026-12-01T10:00:00|1:00:00|\n"),
            (QueueState{.state = "PENDING", .reason = "Resources", .begin = "2026-12-01T10:00:00", .limit = "1:00:00", .nodes = ""}));
  EXPECT_EQ(parseQueueState("RUNNING|None|N/A|UNLIMITED|c[1-2]"),
            (QueueState{.state = "RUNNING", .reason = "", .begin = "", .limit = "UNLIMITED", .nodes = "c[1-2]"}));
  EXPECT_EQ(parseQueueState("").state, "");
  for (const char* alive : {"PENDING", "RUNNING", "COMPLETING", "SUSPENDED", ""}) EXPECT_FALSE(QueueState{.state = alive}.isOver()) << alive;
  for (const char* over : {"COMPLETED", "TIMEOUT", "FAILED", "CANCELLED", "NODE_FAIL", "GONE"}) EXPECT_TRUE(QueueState{.state = over}.isOver()) << over;
  EXPECT_EQ(askQueue("1; rm -rf /").state, "GONE") << "only numbers come near a shell";
}

TEST(Slurm, SaysHowAJobStands) {
  EXPECT_EQ(describeQueue("7", {{"state", "PENDING"}, {"reason", "Resources"}, {"begin", "2026-12-01T10:00:00"}}),
            "Slurm job 7 is pending: Resources, expected to start at 2026-12-01T10:00:00");
  EXPECT_EQ(describeQueue("7", {{"state", "RUNNING"}, {"nodes", "c[1-2]"}}), "Slurm job 7 is running on c[1-2]");
  EXPECT_EQ(describeQueue("7", {{"state", ""}, {"reason", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"}}),
            "Slurm cannot be asked about job 7: the controller (slurmctld) cannot be reached from there");
  EXPECT_EQ(describeQueue("7", {{"state", ""}, {"reason", "squeue does not answer"}}), "Slurm cannot be asked about job 7: squeue does not answer");
}

TEST(Slurm, NamesWhyAJobWasEnded) {
  EXPECT_FALSE(endedBySlurm("7", {{"state", "COMPLETED"}}));
  EXPECT_EQ(*endedBySlurm("7", {{"state", "TIMEOUT"}, {"limit", "1:00:00"}}), "Slurm job 7: Slurm ended it at its time limit (TIMEOUT, 1:00:00)");
  EXPECT_THAT(*endedBySlurm("7", {{"state", "PREEMPTED"}}), HasSubstr("in favour of another job"));
  EXPECT_THAT(*endedBySlurm("7", {{"state", "NODE_FAIL"}}), HasSubstr("one of its nodes failed"));
  EXPECT_THAT(*endedBySlurm("7", {{"state", "OUT_OF_MEMORY"}}), HasSubstr("more memory than it had asked for"));
  EXPECT_EQ(*endedBySlurm("7", {{"state", "FAILED"}, {"said", "evenkeel-agent: no such file"}}),
            "Slurm job 7 is over (FAILED); its log ends with: evenkeel-agent: no such file");
}

TEST(Slurm, LinesOfAWatchAreRecordsOrWordsOfSlurm) {
  EXPECT_EQ((*parseQueueLine(R"(queue {"state":"PENDING","over":false})"))["state"], "PENDING");
  EXPECT_FALSE(parseQueueLine(R"({"state":"PENDING"})"));
  const auto record = parseWatchedRecord(R"(1 {"seq":3,"event":"log"})", 2);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->node, 1U);
  EXPECT_FALSE(parseWatchedRecord(R"(2 {"seq":3,"event":"log"})", 2)) << "there is no node 2";
  for (const char* line : {"", " ", "1", "1 ", "x {}", "1 {\"seq\":0,\"event\":\"log\"}", "-1 {\"seq\":1,\"event\":\"log\"}"})
    EXPECT_FALSE(parseWatchedRecord(line, 2)) << line;
}

TEST(Slurm, SaysWhatALoginNodeLacks) {
  FakeHost bare("gate", [](const Command& command, const std::stop_token&) { return Result<Ending>(FakeHost::reply(command, "", 127)); });
  EXPECT_THAT(slurmNodes(bare, std::chrono::seconds(1), {}).error().text(), HasSubstr("gate: has no Slurm"));
  FakeHost refusing("gate", [](const Command& command, const std::stop_token&) {
    command.onErrorOutput("sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: Invalid partition name specified\n");
    return Result<Ending>(FakeHost::reply(command, "", 1));
  });
  EXPECT_THAT(submitJob(refusing, {}, "/r", "n", std::chrono::seconds(1), {}).error().text(), HasSubstr("sbatch refuses the job: invalid partition specified: x; Batch job submission failed"));
  FakeHost taking("gate", [](const Command& command, const std::stop_token&) { return Result<Ending>(FakeHost::reply(command, "17;cluster\n")); });
  EXPECT_EQ(*submitJob(taking, {"--nodes=2"}, "/r", "n", std::chrono::seconds(1), {}), "17");
  EXPECT_THAT(taking.commands().front(), ElementsAre("sbatch", "--parsable", "--job-name=n", "--chdir=/r", "--output=/r/slurm.log", "--nodes=2", "/r/slurm.sh"));
}

// Its programs' raw lines used to be the message.
TEST(Slurm, ThatDoesNotWorkIsSaidInOurWords) {
  const auto saying = [](std::string said) {
    return FakeHost("gate", [said = std::move(said)](const Command& command, const std::stop_token&) {
      command.onErrorOutput(said);
      return Result<Ending>(FakeHost::reply(command, "", 1));
    });
  };
  for (const auto& [said, words] : std::vector<std::pair<std::string, std::string>>{
           {"sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\nsinfo: error: fetch_config: DNS SRV lookup failed\n"
            "sinfo: error: _establish_config_source: failed to fetch config\nsinfo: fatal: Could not establish a configuration source\n",
            "gate: Slurm does not work: there is no slurm.conf, so that the login node does not know its controller; set SLURM_CONF there"},
           {"slurm_load_partitions: Unable to contact slurm controller (connect failure)\n",
            "gate: Slurm does not work: the controller (slurmctld) cannot be reached from there; wait"},
           {"sinfo: error: If munged is up, restart with --num-threads=10\nsinfo: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n"
            "slurm_load_partitions: Protocol authentication error\n",
            "gate: Slurm does not work: the login node cannot prove who it is: MUNGE does not run there"},
           {"sinfo: error: something new\n", "gate: Slurm does not answer: something new; try `sinfo` there"}}) {
    FakeHost host = saying(said);
    EXPECT_THAT(slurmNodes(host, std::chrono::seconds(1), {}).error().text(), ::testing::StartsWith(words));
  }
  FakeHost host = saying("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n");
  EXPECT_THAT(submitJob(host, {}, "/r", "n", std::chrono::seconds(1), {}).error().text(), ::testing::StartsWith("gate: Slurm does not work: the controller"));
}

/// Two nodes of a job of Slurm.
RunRecord slurmRun() {
  RunRecord run{.id = "r", .worldSize = 2};
  run.nodes = {{.name = "a"}, {.name = "b"}};
  run.slurm.emplace();
  return run;
}
Json ended(const char* state) { return {{"seq", 9}, {"event", "ended"}, {"state", state}}; }

TEST(Slurm, ItsEndIsTheCauseUnlessARankHadFailedBefore) {
  RunRecord run = slurmRun();
  {
    Outcome outcome(run);
    outcome.takeRecord(0, ended("stopped"));  // had the time to say so
    outcome.takeOver("Slurm ended it");
    const auto verdict = outcome.verdict();
    EXPECT_EQ(verdict.state, JobState::Failed);
    EXPECT_EQ(verdict.failed->reason, "Slurm ended it");
    EXPECT_EQ(verdict.failed->node, "");
  }
  {
    Outcome outcome(run);
    outcome.takeRecord(1, {{"seq", 8}, {"event", "failed"}, {"rank", 1}, {"reason", "out of memory"}, {"cause", "own"}});
    outcome.takeOver("Slurm ended it");
    EXPECT_EQ(outcome.verdict().failed->reason, "out of memory");
  }
  {
    Outcome outcome(run);
    for (const int node : {0, 1}) outcome.takeRecord(node, ended("finished"));
    outcome.takeOver("an epilogue failed");
    EXPECT_EQ(outcome.verdict().state, JobState::Finished);
  }
  run.stopRequested = true;  // by us
  Outcome outcome(run);
  outcome.takeOver("Slurm was told to cancel it");
  EXPECT_EQ(outcome.verdict().state, JobState::Stopped);
}

}  // namespace
}  // namespace evenkeel
