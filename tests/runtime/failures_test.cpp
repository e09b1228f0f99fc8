// SPDX-License-Identifier: GPL-3.0-or-later
// What a worker does when something is wrong: it says what, in its last event, and ends with 1 in bounded time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "core/plan/features.h"
#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Model nano() {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 1;
  model.hidden = 16;
  model.heads = 2;
  model.kvHeads = 2;
  model.headDim = 8;
  model.ffn = 32;
  model.context = 16;
  return model;
}

/// Rank 0 alone in one pipeline, ranks 1 and 2 in another.
Plan threeRanks() {
  return planOf(*parseClusterShorthand("1x3:cpu"), nano(),
                {{2, 1, {"cpu-0/0"}, {0, 4}}, {3, 1, {"cpu-0/1", "cpu-0/2"}, {0, 2, 4}}});
}

Plan oneRank() { return planOf(*parseClusterShorthand("1x1:cpu"), nano(), {{2, 1, {"cpu-0/0"}, {0, 4}}}); }

std::string reasonOf(const RankOutcome& outcome) {
  const Json* const failure = outcome.last("failed");
  return failure == nullptr ? "[no failed event] " + outcome.log : failure->value("reason", "");
}

std::string causeOf(const RankOutcome& outcome) {
  const Json* const failure = outcome.last("failed");
  return failure == nullptr ? "" : failure->value("cause", "");
}

RankOutcome outcomeOf(const JobText& job, const WorkerRun::Environment& changes = {}) {
  WorkerRun run(job);
  run.start({{0, changes}});
  return run.finish().front();
}

constexpr std::int64_t kManySteps = 1'000'000;

TEST(WorkerFailure, OfOneRankIsNamedByAllOthers) {
  WorkerRun run({.plan = threeRanks(), .steps = kManySteps});
  run.start();
  ASSERT_TRUE(run.awaitStep(2, 3));
  const auto killed = Clock::now();
  run.signal(2, SIGKILL);
  const auto outcomes = run.finish();
  EXPECT_EQ(outcomes[2].exitStatus, -SIGKILL);
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.exitStatus, 1) << outcome.log;
    EXPECT_THAT(reasonOf(outcome), ::testing::StartsWith("rank 2 (cpu-0/2): ended or closed its connections"));
    EXPECT_EQ(causeOf(outcome), "peer");
    EXPECT_GE(outcome.last("failed")->at("last_step").get<int>(), 2);
    EXPECT_LT(outcome.ended - killed, std::chrono::seconds(20))
        << "a closed connection is noticed at once, not after the timeout of 30 s";
  }
}

TEST(WorkerFailure, OfAShardIsNamedByTheOtherShard) {
  Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), nano(), {{2, 1, {"cpu-0/0"}, {0, 4}}});
  plan.pipelines[0].stages[0].tp = 2;
  plan.pipelines[0].stages[0].devices = plan.cluster.devices();
  WorkerRun run({.plan = plan, .steps = kManySteps});
  run.start();
  ASSERT_TRUE(run.awaitStep(1, 3));
  run.signal(1, SIGKILL);
  const auto outcomes = run.finish();
  EXPECT_EQ(outcomes[0].exitStatus, 1) << outcomes[0].log;
  EXPECT_THAT(reasonOf(outcomes[0]), ::testing::StartsWith("rank 1 (cpu-0/1): ended or closed its connections"));
  EXPECT_EQ(causeOf(outcomes[0]), "peer");
}

TEST(WorkerFailure, OfARankThatHangsIsNoticedWithinTheDeadline) {
  // gloo #520, pytorch #97191: waits for ever.
  WorkerRun run({.plan = threeRanks(), .steps = kManySteps, .peerSeconds = 3});
  run.start();
  ASSERT_TRUE(run.awaitStep(2, 3));
  const auto stopped = Clock::now();
  run.signal(2, SIGSTOP);
  EXPECT_TRUE(run.awaitEnd({0, 1}));
  run.signal(2, SIGKILL);
  const auto others = run.finish();
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = others[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.exitStatus, 1) << outcome.log;
    EXPECT_THAT(reasonOf(outcome), ::testing::StartsWith("rank 2 (cpu-0/2)"));
    EXPECT_EQ(causeOf(outcome), "peer");
    EXPECT_LT(outcome.ended - stopped, std::chrono::seconds(30));
  }
}

TEST(WorkerFailure, IsReportedAlsoWhereTheStoreHangs) {
  WorkerRun run({.plan = threeRanks(), .steps = kManySteps});
  run.start();
  ASSERT_TRUE(run.awaitStep(2, 3));
  run.signalStore(SIGSTOP);
  run.signal(2, SIGKILL);
  EXPECT_TRUE(run.awaitEnd({0, 1}));
  run.signalStore(SIGCONT);
  const auto outcomes = run.finish();
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(outcomes[rank].exitStatus, 1);
    EXPECT_EQ(causeOf(outcomes[rank]), "peer") << reasonOf(outcomes[rank]);
  }
  EXPECT_THAT(reasonOf(outcomes[1]), HasSubstr("rank 2 (cpu-0/2)"));
}

TEST(WorkerStart, IsRefusedWhereRanksHaveUnlikePlans) {
  Plan other = threeRanks();
  other.pipelines[1].stages[0].units.last = other.pipelines[1].stages[1].units.first = 3;
  WorkerRun run({{.plan = threeRanks()}, {.plan = other}, {.plan = threeRanks()}});
  run.start();
  for (const RankOutcome& outcome : run.finish()) {
    EXPECT_EQ(outcome.exitStatus, 1);
    EXPECT_THAT(reasonOf(outcome), HasSubstr("unlike rank 0: rank 1 (another plan)"));
  }
}

TEST(WorkerStart, IsRefusedWhereRanksHaveUnlikeRunsOrData) {
  WorkerRun run(
      {{.plan = threeRanks()}, {.plan = threeRanks(), .data = std::string(500, 'x')}, {.plan = threeRanks(), .steps = 21}});
  run.start();
  for (const RankOutcome& outcome : run.finish()) {
    EXPECT_EQ(outcome.exitStatus, 1);
    EXPECT_THAT(reasonOf(outcome), HasSubstr("unlike rank 0: rank 1 (another data), rank 2 (another run)"));
  }
}

TEST(WorkerStart, NamesARankThatDoesNotCome) {
  WorkerRun run({.plan = threeRanks(), .startSeconds = 4});
  run.start({{1, {{"RANK", "7"}}}});
  const auto outcomes = run.finish();
  EXPECT_THAT(reasonOf(outcomes[1]), HasSubstr("RANK: is \"7\"; expected a number from 0 to 2"));
  EXPECT_EQ(causeOf(outcomes[1]), "own");
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(outcomes[rank].exitStatus, 1);
    EXPECT_THAT(reasonOf(outcomes[rank]), HasSubstr("rank 1: did not start"));
    EXPECT_EQ(causeOf(outcomes[rank]), "peer");
  }
}

TEST(WorkerStart, SaysWhatIsWrongWithItsEnvironment) {
  const JobText job{.plan = oneRank(), .steps = 1, .startSeconds = 2};
  const auto reasonWith = [&](const WorkerRun::Environment& changes) {
    const RankOutcome outcome = outcomeOf(job, changes);
    EXPECT_EQ(outcome.exitStatus, 1);
    return reasonOf(outcome);
  };
  EXPECT_THAT(reasonWith({{"RANK", "1"}}), HasSubstr("RANK: is \"1\"; expected a number from 0 to 0"));
  EXPECT_THAT(reasonWith({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE: is 2, but the plan uses 1 devices"));
  EXPECT_THAT(reasonWith({{"MASTER_ADDR", ""}}), HasSubstr("MASTER_ADDR: is not set"));
  EXPECT_THAT(reasonWith({{"MASTER_PORT", "1"}}), HasSubstr("store at 127.0.0.1:1: does not answer"));
  EXPECT_THAT(reasonWith({{"EVENKEEL_TRAIN_ADDRESS", "192.0.2.1"}}),
              HasSubstr("EVENKEEL_TRAIN_ADDRESS: 192.0.2.1 cannot be bound"));
}

TEST(WorkerStart, SaysWhatIsWrongWithItsData) {
  EXPECT_THAT(reasonOf(outcomeOf({.plan = oneRank(), .data = "short"})),
              HasSubstr("has 5 tokens, fewer than the 17 of one sample"));
  Plan plan = oneRank();
  plan.model.vocab = 100;
  EXPECT_THAT(reasonOf(outcomeOf({.plan = plan})), HasSubstr("outside of the model's vocabulary of 100"));
}

TEST(WorkerStart, SurvivesAnyJobFile) {
  WorkerRun run({.plan = oneRank()});
  const std::vector<std::string> files = {"", "[]", "{\"format\":\"evenkeel.job/1\"}", std::string("\0\xff\xfe{", 4),
                                          std::string(100'000, '[')};
  for (const std::string& file : files) run.startWithFile(file);
  for (const RankOutcome& outcome : run.finish()) {
    EXPECT_EQ(outcome.exitStatus, 1) << outcome.log;
    EXPECT_EQ(causeOf(outcome), "own");
    EXPECT_THAT(reasonOf(outcome), HasSubstr("given.json"));
  }
}

TEST(WorkerTraining, EndsWhereTheLossIsNoNumber) {
  // Decay above 1 / learning rate: the weights grow beyond every bound.
  const RankOutcome outcome = outcomeOf({.plan = oneRank(), .steps = 200, .learningRate = 1000, .weightDecay = 1});
  EXPECT_EQ(outcome.exitStatus, 1);
  EXPECT_THAT(reasonOf(outcome), ::testing::ContainsRegex("training: the (loss|norm of the gradient) of step [0-9]+ is"));
  EXPECT_EQ(causeOf(outcome), "own");
  EXPECT_EQ(outcome.last("failed")->at("last_step").get<std::size_t>(), outcome.ofSteps("loss").size());
}

TEST(WorkerTraining, ReportsEveryStepWithWhereItsTimeWent) {
  WorkerRun run({.plan = threeRanks(), .steps = 4});
  run.start({{0, {{"OPENBLAS_CORETYPE", ""}}}});  // rank 0 chooses its kernels itself, as it does on a node
  const auto outcomes = run.finish();
  for (const RankOutcome& outcome : outcomes) {
    ASSERT_EQ(outcome.exitStatus, 0) << outcome.log;
    EXPECT_EQ(outcome.last("ready")->at("plan_sha256"), outcomes[0].last("ready")->at("plan_sha256"));
    EXPECT_EQ(outcome.last("finished")->at("steps"), 4);
    const Json& step = *outcome.last("step");
    EXPECT_EQ(step.at("step"), 4);
    EXPECT_EQ(step.at("tokens"), 5 * 16);
    EXPECT_GT(step.at("peak_bytes").get<std::int64_t>(), 1 << 20);
    EXPECT_EQ(step.at("grad_norm"), outcomes[0].last("step")->at("grad_norm"));
    EXPECT_GT(step.at("grad_norm").get<double>(), 0.0);
    double parts = 0;
    for (const char* part : {"compute_ms", "p2p_ms", "bubble_ms", "sync_ms", "optimizer_ms"}) {
      EXPECT_GE(step.at(part).get<double>(), 0.0);
      parts += step.at(part).get<double>();
    }
    EXPECT_LE(parts, step.at("iteration_ms").get<double>() + 1e-6);
  }
  EXPECT_EQ(outcomes[1].last("ready")->at("device"), "cpu-0/1");
  EXPECT_EQ(outcomes[0].last("step")->at("p2p_ms"), 0.0) << "a pipeline of one stage waits for nobody's tensors";
}

std::pair<std::string, int> outputOf(const std::string& arguments) {
  FILE* const pipe = ::popen((EVENKEEL_BIN_DIR "/evenkeel-worker " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  return {text, WEXITSTATUS(::pclose(pipe))};
}

TEST(WorkerProgram, PrintsItsFeatures) {
  const auto [text, status] = outputOf("--features");
  EXPECT_EQ(status, 0);
  const auto features = parseFeatures(Json::parse(text), "stdout");
  ASSERT_TRUE(features);
  EXPECT_EQ(*features, ownRuntime());
}

TEST(WorkerProgram, ExplainsItsUse) {
  for (const char* const arguments : {"", "--store --address 127.0.0.1 --ranks none", "--nonsense"}) {
    const auto [text, status] = outputOf(arguments);
    EXPECT_EQ(status, 2) << arguments;
    EXPECT_THAT(text, HasSubstr("usage: evenkeel-worker"));
  }
}

TEST(WorkerProgram, EndsAlsoWhereNobodyReadsItsLastWords) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::alarm(60);  // it stays over exec: one that waits for ever is killed
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execl(EVENKEEL_BIN_DIR "/evenkeel-worker", "evenkeel-worker", "--job", "/nowhere/job.json", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(WorkerProgram, EndsWithItsParent) {
  // DeepSpeed #1995: what outlives its launcher holds the device. The store is a worker too and needs no peers to test it.
  int input[2], output[2];
  ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(output, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (::fork() == 0) {
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      ::execl(EVENKEEL_BIN_DIR "/evenkeel-worker", "evenkeel-worker", "--store", "--address", "127.0.0.1", "--ranks", "1",
              nullptr);
    }
    ::close(output[1]);
    for (;;) ::pause();
  }
  ::close(output[1]);
  char byte = 0;
  ASSERT_EQ(::read(output[0], &byte, 1), 1) << "it should have started";
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  while (::read(output[0], &byte, 1) == 1) {
  }  // ends when the last writer does: the test would time out otherwise
  for (const int descriptor : {input[0], input[1], output[0]}) ::close(descriptor);
}

}  // namespace
}  // namespace evenkeel
