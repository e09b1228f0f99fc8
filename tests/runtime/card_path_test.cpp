// SPDX-License-Identifier: GPL-3.0-or-later
// The way of a rank on a card, gone on the CPU: tensors that no loop of ours touches, updates and dropout by ops of LibTorch, messages
// between cards apart from those of the host. What CUDA and NCCL themselves do is not seen here.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/random.h"
#include "runtime/comm/routed_comm.h"
#include "runtime/nn/dropout.h"
#include "runtime/optim/adamw_tensors.h"
#include "runtime/train/out_of_memory.h"
#include "tests/runtime/random_plans.h"
#include "tests/runtime/thread_world.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

at::Tensor flat(std::vector<float>& values) { return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}); }

TEST(AdamWOnTensors, HasTheBitsOfTheLoop) {
  constexpr std::size_t kCount = 1003;
  const CounterRandom random(3, "adamw");
  std::vector<float> parameters(kCount), first(kCount), second(kCount), gradients(kCount);
  for (std::size_t i = 0; i < kCount; ++i) parameters[i] = static_cast<float>(random.normal(i));
  std::vector<float> parametersToo = parameters, firstToo = first, secondToo = second;
  AdamWStep settings{.learningRate = 0.02, .beta1 = 0.9, .beta2 = 0.95, .weightDecay = 0.1, .gradientScale = 0.7};
  for (settings.step = 1; settings.step <= 6; ++settings.step) {
    for (std::size_t i = 0; i < kCount; ++i)
      gradients[i] = i % 9 == 0 ? 0.0F : static_cast<float>(random.normal(1000U * static_cast<std::uint64_t>(settings.step) + i) * 1e-3);
    applyAdamW(AdamWState{parameters, gradients, first, second}, settings);
    applyAdamW(AdamWTensors{flat(parametersToo), flat(gradients), flat(firstToo), flat(secondToo)}, settings);
    EXPECT_EQ(first, firstToo) << settings.step;
    EXPECT_EQ(second, secondToo) << settings.step;
    ASSERT_EQ(parameters, parametersToo) << settings.step;
  }
  EXPECT_DOUBLE_EQ(sumOfSquares(flat(gradients)).item<double>(), sumOfSquares(std::span<const float>(gradients)));
}

TEST(DropoutOnTensors, DrawsTheBitsOfTheLoop) {
  const at::Tensor x = at::rand({3, 2, 35}) + 0.5;
  const auto drawn = [&](const at::Tensor& part, bool byTensors, std::int64_t firstSample, DropoutPart place, std::uint64_t seed) {
    const Dropout dropout{.probability = 0.25, .seed = seed, .byTensors = byTensors};
    return drop(part, dropout, Op::Dropout1, 1, {.step = 4, .firstSample = firstSample}, place);
  };
  for (const std::uint64_t seed : {std::uint64_t{9}, std::uint64_t{0xFEDCBA9876543210}}) {
    // Far samples: the index of a block has more than 32 bits. Shards that begin and end within a block of four.
    for (const std::int64_t firstSample : {std::int64_t{0}, std::int64_t{10}, std::int64_t{1} << 40}) {
      EXPECT_TRUE(drawn(x, true, firstSample, {3, 70, 0}, seed).equal(drawn(x, false, firstSample, {3, 70, 0}, seed)));
      const at::Tensor half = x.narrow(1, 1, 1).contiguous();
      EXPECT_TRUE(drawn(half, true, firstSample, {3, 70, 35}, seed).equal(drawn(half, false, firstSample, {3, 70, 35}, seed)));
    }
  }
}

ComputeDevice likeACard() { return {.isHost = false}; }

Run runWith(double dropout, double clip) {
  Run run;
  run.steps = 4;
  run.learningRate.peak = 3e-3;
  run.learningRate.warmupSteps = 1;
  run.dropout = dropout;
  run.gradientClip = clip;
  return run;
}

const std::string& text() {
  static const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += std::to_string(i * i % 89) + " hulls and " + std::to_string(i) + " keels.\n";
    return lines;
  }();
  return text;
}

void expectTheCurve(const WorldOutcome& one, const WorldOutcome& other, double tolerance) {
  ASSERT_THAT(one.errors, Each(""));
  ASSERT_THAT(other.errors, Each(""));
  for (int rank = 0; rank < static_cast<int>(one.errors.size()); ++rank) {
    const std::vector<double> losses = one.ofSteps(rank, "loss"), others = other.ofSteps(rank, "loss");
    ASSERT_EQ(losses.size(), others.size());
    ASSERT_EQ(losses.size(), 4U);
    for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(others[step], losses[step], tolerance * losses[step]) << "step " << step + 1;
  }
}

TEST(TheWayOfACard, TrainsTheCurveOfTheCpu) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), 7);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + toJson(plan)["pipelines"].dump());
    const auto run = runWith(seed % 2 == 0 ? 0.2 : 0, 0);
    // Nothing but the norm is added up in another order, and nothing is clipped: the same bits.
    expectTheCurve(trainInThreads(plan, run, text()),
                   trainInThreads(plan, run, text(), {}, {}, {.device = [](int) { return likeACard(); }}), 0);
  }
}

TEST(TheWayOfACard, ClipsAndKeepsMastersAsTheCpuDoes) {
  Plan plan = randomPlan(1, randomModel(1), 7);
  plan.training.precision = Precision::Bf16;
  const auto run = runWith(0.1, 0.05);
  expectTheCurve(trainInThreads(plan, run, text()), trainInThreads(plan, run, text(), {}, {}, {.device = [](int) { return likeACard(); }}), 1e-6);
}

/// A network of its own for cards, which counts what it carries: the same one, for its messages are apart anyway.
class CountingComm final : public Comm {
 public:
  CountingComm(Comm& comm, int& count) : comm_(comm), count_(count) {}
  int rank() const override { return comm_.rank(); }
  int worldSize() const override { return comm_.worldSize(); }
  Result<void> open(std::vector<Line> lines) override {
    lines_ = {lines.begin(), lines.end()};
    return comm_.open(std::move(lines));
  }
  Result<void> join(const std::vector<int>& ranks) override { return comm_.join(ranks); }
  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) override {
    EXPECT_TRUE(lines_.contains({rank(), peer, tag}));
    ++count_;
    return comm_.send(tensor, peer, tag);
  }
  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override {
    EXPECT_TRUE(lines_.contains({peer, rank(), tag}));
    return comm_.receive(tensor, peer, tag);
  }
  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    ++count_;
    return comm_.startAllReduceSum(tensor, ranks);
  }
  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override { return comm_.allReduceMax(tensor, ranks); }

 private:
  Comm& comm_;
  int& count_;
  std::set<Line> lines_;
};

/// Losses, norms and tables are integers and doubles: those stay on the host.
bool isOnCard(const at::Tensor& tensor) { return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16; }

TEST(TheWayOfACard, LeadsPastTheHostBetweenCardsOnly) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Plan plan = randomPlan(seed, randomModel(seed), 7);
    const auto ranks = static_cast<int>(plan.usedDevices().size());
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + toJson(plan)["pipelines"].dump());
    const auto run = runWith(0, 0);
    const WorldOutcome plain = trainInThreads(plan, run, text());
    for (const int cards : {ranks, ranks / 2}) {  // all ranks, or the first half of them
      std::vector<int> counts(static_cast<std::size_t>(ranks), 0);
      const RankKinds kinds{
          .device = [&](int rank) { return rank < cards ? likeACard() : ComputeDevice{}; },
          .wrap =
              [&](int rank, std::unique_ptr<Comm> comm) {
                if (rank >= cards) return comm;
                std::vector<bool> isCard;
                for (int r = 0; r < ranks; ++r) isCard.push_back(r < cards);
                auto counting = std::make_unique<CountingComm>(*comm, counts[static_cast<std::size_t>(rank)]);
                return routed(std::move(comm), std::move(counting), {.isCard = std::move(isCard), .isOnCard = isOnCard});
              }};
      expectTheCurve(plain, trainInThreads(plan, run, text(), {}, {}, kinds), 0);
      for (int rank = cards; rank < ranks; ++rank) EXPECT_EQ(counts[static_cast<std::size_t>(rank)], 0);
      if (cards == ranks && ranks > 1) {
        EXPECT_THAT(counts, ::testing::Contains(::testing::Gt(0)));
      }
    }
  }
}

TEST(OutOfMemory, NamesTheStageAndWhatWouldNeedLess) {
  const Plan plan = planOf(*parseClusterShorthand("1x2:A100-80-SXM"), *modelFromArgument("tiny-gpt"), {{8, 4, {"a100-80-sxm-0/0", "a100-80-sxm-0/1"}, {0, 9, 18}}});
  const auto error = outOfMemory("CUDA out of memory. Tried to allocate 2.00 GiB.\nException raised from malloc", plan, 1);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text(), "pipeline 0, stage 1, a100-80-sxm-0/1 (rank 1): ran out of memory: CUDA out of memory. Tried to allocate 2.00 GiB.; "
                           "train micro-batches of 2 instead of 4, or recompute ops of this stage, or move units to another stage");
  EXPECT_TRUE(outOfMemory("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes", plan, 0));
  EXPECT_TRUE(outOfMemory("std::bad_alloc", plan, 0));
  EXPECT_FALSE(outOfMemory("mat1 and mat2 shapes cannot be multiplied", plan, 0));
}

}  // namespace
}  // namespace evenkeel
