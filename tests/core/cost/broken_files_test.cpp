// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever a plan's file holds, reading and evaluating it ends with an error, violations or numbers; never with a crash.
#include <gtest/gtest.h>

#include <cmath>

#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "tests/support/json_mutation.h"
#include "tests/support/plans.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

std::vector<Json> goodPlans() {
  Plan cpu = planOf(*parseClusterShorthand("1x2:cpu@0.5,1x2:cpu@0.25"), *modelFromArgument("tiny-gpt"),
                    {{9, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}, {4, 1, {"cpu-1/0"}, {0, 18}}});
  Plan gpu = planOf(*parseClusterShorthand("2x2:A100-80-SXM"), *modelFromArgument("tiny-llama"), {{8, 2, {"a100-80-sxm-0/0", "a100-80-sxm-1/0"}, {0, 7, 18}}});
  gpu.pipelines[0].stages[0].devices = {{0, 0}, {0, 1}};
  gpu.pipelines[0].stages[0].tp = 2;
  gpu.pipelines[0].stages[1].devices = {{1, 0}, {1, 1}};
  gpu.pipelines[0].stages[1].dp = 2;
  gpu.pipelines[0].stages[1].recompute = {{{7, 12}, {Op::Qkv, Op::Softmax, Op::Activation}}};
  gpu.cluster.switches = {{"s", {"a100-80-sxm-0", "a100-80-sxm-1"}, fromGbs(3), {}, {}}};
  Plan table = planOf(*parseClusterShorthand("1x2:T4"), *modelFromArgument("tiny-gpt"), {{8, 2, {"t4-0/0", "t4-0/1"}, {0, 9, 18}}});
  OpaqueLayer layer{.name = "block", .parameters = 1000, .saved = {4096}, .transient = {64}, .forward = {1e9}};
  table.model.heads = table.model.kvHeads = 1;
  table.model.headDim = table.model.ffn = table.model.vocab = table.model.vocabMultiple = 1;
  table.model.tiedEmbeddings = false;
  layer.times["T4"] = {Seconds{0.001}, Seconds{0.002}};
  table.model.opaque = OpaqueLayers{layer, layer, layer};
  table.pipelines[0].stages[0].recompute = {{{1, 9}, {Op::Qkv}}};
  gpu.cluster.switches[0].total = fromGbs(4);
  return {toJson(cpu), toJson(gpu), toJson(table)};
}

TEST(BrokenPlanFiles, NeverCrashTheReaderOrTheCostModel) {
  const auto plans = goodPlans();
  int readable = 0, valid = 0;
  const int count = sweep(1500, 60'000);
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Json json = plans[static_cast<std::size_t>(seed) % plans.size()];
    for (int changes = 1 + seed % 3; changes > 0; --changes) mutate(json, random);
    const auto plan = parsePlan(json, "fuzz.json");
    if (!plan) {
      EXPECT_FALSE(plan.error().text().empty()) << seed;
      continue;
    }
    ++readable;
    const AnalyticProfile profile(plan->model, plan->training);
    const Evaluation evaluation = evaluate(*plan, profile);
    if (!evaluation.valid()) continue;
    ++valid;
    ASSERT_TRUE(evaluation.plan.predicted) << seed;
    EXPECT_TRUE(std::isfinite(evaluation.plan.predicted->iteration.value)) << seed;
    EXPECT_GT(evaluation.plan.predicted->iteration.value, 0) << seed;
  }
  EXPECT_GT(readable, count / 10) << "the mutations are so rough that nothing behind the reader is tried";
  EXPECT_GT(valid, count / 50);
}

TEST(BrokenClusterTexts, NeverCrashTheShorthand) {
  static constexpr std::string_view kAlphabet = "0123456789x:@,.-+eA cpu\xff\n";
  for (int seed = 0; seed < sweep(20'000, 500'000); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::string text = seed % 2 == 0 ? "" : "2x2:cpu@0.5,1x1:cpu";
    for (int i = 0; i < 1 + seed % 8; ++i) {
      const char c = kAlphabet[random() % kAlphabet.size()];
      if (text.empty() || random() % 2 == 0) text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)), c);
      else text[random() % text.size()] = c;
    }
    const auto cluster = parseClusterShorthand(text);
    if (cluster) {
      EXPECT_GE(cluster->deviceCount(), 1) << text;
      EXPECT_LE(cluster->deviceCount(), kMaxDevices) << text;
    }
  }
}

}  // namespace
}  // namespace evenkeel
