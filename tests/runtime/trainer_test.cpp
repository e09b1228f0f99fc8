// SPDX-License-Identifier: GPL-3.0-or-later
// The whole training step of one rank against the textbook: double precision, one batch at once, tensor by tensor.
#include "runtime/train/trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "runtime/nn/stage_model.h"
#include "tests/runtime/unit_runs.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

/// A world of one rank.
class LoneComm final : public Comm {
 public:
  struct Done final : Transfer {
    Result<void> wait() override { return {}; }
  };
  int rank() const override { return 0; }
  int worldSize() const override { return 1; }
  std::unique_ptr<Transfer> send(const at::Tensor&, int, int) override { return nullptr; }
  std::unique_ptr<Transfer> receive(const at::Tensor&, int, int) override { return nullptr; }
  Result<void> join(const std::vector<int>&) override { return {}; }
  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor&, const std::vector<int>&) override {
    return std::make_unique<Done>();
  }
  Result<void> allReduceMax(const at::Tensor&, const std::vector<int>&) override { return {}; }
};

Job exampleJob(const std::filesystem::path& text) {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 1;
  model.hidden = 16;
  model.heads = 2;
  model.kvHeads = 2;
  model.headDim = 8;
  model.ffn = 32;
  model.vocab = 130;  // padded to 256
  model.context = 12;
  Job job;
  job.plan = planOf(*parseClusterShorthand("1x1:cpu"), model, {{5, 2, {"cpu-0/0"}, {0, 4}}});
  job.plan.training.sequenceLength = 10;
  job.run.steps = 6;
  job.run.learningRate = {.peak = 1e-2, .warmupSteps = 2};
  job.run.weightDecay = 0.5;
  job.trainFile = text;
  return job;
}

struct Step {
  double loss = 0, gradientNorm = 0;
};

/// Every tensor as a leaf of its own, in double precision.
class Textbook {
 public:
  explicit Textbook(const Job& job) : job_(job), map_(blockMap(job.plan)) {
    const Parameters initial(map_, 0, 0, job.run.seed);
    for (const TensorSpec& tensor : map_.tensors) {
      weights_[tensor.name] = initial.weight(tensor.name).detach().to(at::kDouble).requires_grad_();
      moments_[tensor.name] = {at::zeros(tensor.shape, at::kDouble), at::zeros(tensor.shape, at::kDouble)};
    }
  }

  Step step(std::int64_t step, const TokenSamples& samples) {
    const auto [inputs_BS, targets_BS] = batch(step, samples);
    const at::Tensor loss = meanLoss(inputs_BS, targets_BS);
    loss.backward();
    const at::NoGradGuard noGrad;
    double squares = 0;
    for (auto& [name, weight] : weights_) squares += weight.grad().square().sum().item<double>();
    const double rate = job_.run.learningRate.at(step, job_.run.steps);
    for (auto& [name, weight] : weights_) {
      auto& [first, second] = moments_.at(name);
      const at::Tensor gradient = weight.grad();
      first = job_.run.beta1 * first + (1 - job_.run.beta1) * gradient;
      second = job_.run.beta2 * second + (1 - job_.run.beta2) * gradient * gradient;
      const double steps = static_cast<double>(step) + 1;
      const at::Tensor mean = first / (1 - std::pow(job_.run.beta1, steps)),
                       square = second / (1 - std::pow(job_.run.beta2, steps));
      if (weight.dim() == 2) weight.mul_(1 - rate * job_.run.weightDecay);
      weight.sub_(rate * mean / (square.sqrt() + job_.run.epsilon));
      weight.mutable_grad() = at::Tensor();
    }
    return {.loss = loss.item<double>(), .gradientNorm = std::sqrt(squares)};
  }

 private:
  std::pair<at::Tensor, at::Tensor> batch(std::int64_t step, const TokenSamples& samples) const {
    const std::int64_t batch = job_.plan.training.globalBatch, sequence = job_.plan.training.sequenceLength;
    const at::Tensor windows = at::empty({batch, sequence + 1}, at::kLong);
    for (std::int64_t i = 0; i < batch; ++i) {
      EXPECT_TRUE(
          samples.read(step, i, {windows.data_ptr<std::int64_t>() + i * (sequence + 1), static_cast<std::size_t>(sequence + 1)}));
    }
    return {windows.narrow(1, 0, sequence), windows.narrow(1, 1, sequence)};
  }

  at::Tensor meanLoss(const at::Tensor& inputs_BS, const at::Tensor& targets_BS) {
    const auto norm = [&](const std::string& name) {
      return NormWeights{weights_.at(name + ".weight"), weights_.at(name + ".bias")};
    };
    const auto linear = [&](const std::string& name) {
      return LinearWeights{weights_.at(name + ".weight"), weights_.at(name + ".bias")};
    };
    at::Tensor x_BSH = embed(inputs_BS, {weights_.at("embedding.token"), weights_.at("embedding.position")});
    x_BSH = attention(x_BSH, {.norm = norm("layer.0.norm1"),
                              .query = linear("layer.0.attention.query"),
                              .key = linear("layer.0.attention.key"),
                              .value = linear("layer.0.attention.value"),
                              .projection = linear("layer.0.attention.projection"),
                              .heads = 2,
                              .kvHeads = 2,
                              .headDim = 8});
    x_BSH = mlp(x_BSH, {.norm = norm("layer.0.norm2"), .fc1 = linear("layer.0.mlp.fc1"), .fc2 = linear("layer.0.mlp.fc2")});
    const at::Tensor sum =
        sumOfTokenLosses(x_BSH, targets_BS,
                         {.norm = norm("head.norm"), .token_VH = weights_.at("embedding.token"), .vocab = job_.plan.model.vocab});
    return sum / static_cast<double>(targets_BS.numel());
  }

  const Job& job_;
  BlockMap map_;
  std::map<std::string, at::Tensor> weights_;
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments_;
};

TEST(Trainer, FollowsTheTextbook) {
  const std::filesystem::path folder = ::testing::TempDir();
  const auto text = folder / "trainer_text", events = folder / "trainer_events";
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes += static_cast<char>(' ' + i * i % 90);
  ASSERT_TRUE(writeFileAtomically(text, bytes));
  const Job job = exampleJob(text);
  const auto samples = TokenSamples::open(text, {.sequenceLength = 10, .vocab = 130, .seed = job.run.seed});
  ASSERT_TRUE(samples);

  ASSERT_TRUE(writeFileAtomically(events, ""));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(events.c_str(), "w"), &std::fclose);
  EventWriter writer(::fileno(file.get()));
  LoneComm comm;
  std::atomic<std::int64_t> lastStep = 0;
  ASSERT_TRUE(train(job, comm, *samples, writer, lastStep));
  EXPECT_EQ(lastStep, 6);

  Textbook textbook(job);
  std::ifstream lines(events);
  std::string line;
  for (std::int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(std::getline(lines, line));
    const Json event = Json::parse(line);
    const Step expected = textbook.step(step, *samples);
    EXPECT_EQ(event.at("step"), step + 1);
    EXPECT_NEAR(event.at("loss").get<double>(), expected.loss, 1e-5 * expected.loss) << "step " << step + 1;
    EXPECT_NEAR(event.at("grad_norm").get<double>(), expected.gradientNorm, 1e-4 * expected.gradientNorm) << "step " << step + 1;
    EXPECT_EQ(event.at("learning_rate").get<double>(), job.run.learningRate.at(step, 6));
  }
}

}  // namespace
}  // namespace evenkeel
