// SPDX-License-Identifier: GPL-3.0-or-later
// Random faults, one a run: a killed or stopped rank, a disk that is full, a checkpoint that was cut off or damaged, a rank with another
// plan. Whatever it was: all ranks end in bounded time and say why, and the last good checkpoint can be gone on from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>

#include "core/base/random.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "tests/runtime/worker_run.h"
#include "tests/support/plans.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kManySteps = 1'000'000, kSteps = 12;
constexpr double kPeerSeconds = 3;
/// Deadlines of one rank after the other, and a busy machine.
constexpr std::chrono::seconds kBound{45};

enum class Fault { Kill, Stop, FullDisk, CutCheckpoint, DamagedCheckpoint, OtherPlan };
constexpr std::array<const char*, 6> kNames = {"kill -9", "SIGSTOP", "full disk", "cut checkpoint", "damaged checkpoint", "another plan"};

Plan planOfRanks(std::uint64_t ranks) {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 1;
  model.hidden = 16;
  model.heads = model.kvHeads = 2;
  model.headDim = 8;
  model.ffn = 32;
  model.context = 16;
  if (ranks == 2) return planOf(*parseClusterShorthand("1x2:cpu"), model, {{4, 2, {"cpu-0/0", "cpu-0/1"}, {0, 2, 4}}});
  return planOf(*parseClusterShorthand("1x3:cpu"), model, {{2, 1, {"cpu-0/0"}, {0, 4}}, {3, 1, {"cpu-0/1", "cpu-0/2"}, {0, 2, 4}}});
}

class FaultyRun {
 public:
  explicit FaultyRun(std::uint64_t seed) : random_(seed, "faults"), plan_(planOfRanks(2 + below(2))) {}

  void run(Fault fault) {
    switch (fault) {
      case Fault::Kill: return loseARank(SIGKILL);
      case Fault::Stop: return loseARank(SIGSTOP);
      case Fault::FullDisk: return fillTheDisk();
      case Fault::CutCheckpoint: return spoilTheLastCheckpoint([&](const std::filesystem::path& file) { std::filesystem::resize_file(file, below(std::filesystem::file_size(file))); });
      case Fault::DamagedCheckpoint: return spoilTheLastCheckpoint([&](const std::filesystem::path& file) { flipAByteOf(file); });
      case Fault::OtherPlan: return differ();
    }
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_.below(next_++, limit); }
  JobText job(std::int64_t steps) const {
    return {.plan = plan_, .steps = steps, .peerSeconds = kPeerSeconds, .checkpointEvery = 4, .checkpointDirectory = folder_.path().string()};
  }
  int ranks() const { return static_cast<int>(plan_.usedDevices().size()); }

  void expectEnd(const std::vector<RankOutcome>& outcomes, int spared, Clock::time_point since) {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == spared) continue;
      const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(outcome.exitStatus, 1) << "rank " << rank << ": " << outcome.log;
      ASSERT_NE(outcome.last("failed"), nullptr) << "rank " << rank << " has not said why: " << outcome.log;
      EXPECT_LT(outcome.ended - since, kBound) << "rank " << rank;
    }
  }
  void expectGoodCheckpoint() const {
    const auto reader = CheckpointReader::open(folder_.path());
    ASSERT_TRUE(reader.ok()) << reader.error().text();
    EXPECT_TRUE(reader->passedOver().empty()) << "what stands under its name is whole";
  }

  void loseARank(int signal) {
    WorkerRun run(job(kManySteps));
    run.start();
    ASSERT_TRUE(run.awaitStep(0, 5 + static_cast<std::int64_t>(below(30)))) << "a checkpoint is there";
    const int lost = static_cast<int>(below(static_cast<std::uint64_t>(ranks())));
    const auto since = Clock::now();
    run.signal(lost, signal);
    std::vector<int> others;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank != lost) others.push_back(rank);
    }
    EXPECT_TRUE(run.awaitEnd(others));
    run.signal(lost, SIGKILL);
    expectEnd(run.finish(), lost, since);
    expectGoodCheckpoint();
  }

  /// A limit on the size of files stands in for a disk that is full.
  void fillTheDisk() {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    WorkerRun run(job(kSteps));
    const rlimit small{.rlim_cur = 1000 + below(20'000), .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    run.start();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    const auto outcomes = run.finish();
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.exitStatus, 0) << "the run is worth more than the checkpoint: " << outcome.log;
    ASSERT_NE(outcomes[0].last("warning"), nullptr);
    EXPECT_THAT(outcomes[0].last("warning")->at("text").get<std::string>(), HasSubstr("was not written"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing half-written is left";
  }

  template <class Spoil>
  void spoilTheLastCheckpoint(const Spoil& spoil) {
    WorkerRun first(job(kSteps));
    first.start();
    for (const RankOutcome& outcome : first.finish()) ASSERT_EQ(outcome.exitStatus, 0) << outcome.log;
    const auto checkpoints = checkpointsIn(folder_.path());
    ASSERT_EQ(checkpoints.size(), 3U);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints.front())) {
      if (entry.path().filename() != "checkpoint.json") files.push_back(entry.path());  // it holds the sums of the others
    }
    std::ranges::sort(files);
    spoil(files[below(files.size())]);
    JobText wish = job(kSteps + 2);
    wish.resume = folder_.path().string();
    WorkerRun second(wish);
    second.start();
    const auto outcomes = second.finish();
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.exitStatus, 0) << outcome.log;
    ASSERT_NE(outcomes[0].last("warning"), nullptr) << "a damaged checkpoint is passed over in words";
    EXPECT_EQ(outcomes[0].ofSteps("step").front(), 9) << "the one before it is of step 8";
  }
  void flipAByteOf(const std::filesystem::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto place = static_cast<std::streamoff>(below(std::filesystem::file_size(file)));
    stream.seekg(place);
    const auto byte = static_cast<char>(stream.get() ^ (1 << below(8)));
    stream.seekp(place);
    stream.put(byte);
  }

  void differ() {
    std::vector<JobText> jobs(static_cast<std::size_t>(ranks()), job(kSteps));
    jobs[below(jobs.size())].plan.pipelines.back().microBatch = 3 - jobs.front().plan.pipelines.back().microBatch;
    WorkerRun run(jobs);
    const auto since = Clock::now();
    run.start();
    expectEnd(run.finish(), -1, since);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }

  CounterRandom random_;
  std::uint64_t next_ = 0;
  TemporaryDirectory folder_;
  Plan plan_;
};

TEST(RandomFaults, EndInWordsAndLeaveTheLastGoodCheckpoint) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sweep(2, 100)); ++seed) {
    const auto fault = static_cast<Fault>(seed % kNames.size());
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + kNames[static_cast<std::size_t>(fault)]);
    FaultyRun(seed).run(fault);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace evenkeel
