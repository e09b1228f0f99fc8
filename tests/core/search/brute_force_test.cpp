// SPDX-License-Identifier: GPL-3.0-or-later
// Every plan of one device a stage of tiny clusters: for the planners, and for the oracle that knows more of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/cost/evaluate.h"
#include "tests/core/search/oracle.h"
#include "tests/core/search/problems.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

/// The fastest plan with one device a stage and no recomputation.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem)
      : profile_(problem.model, problem.training),
        model_(problem.cluster, problem.model, problem.training, profile_),
        devices_(problem.cluster.devices()),
        used_(devices_.size(), false) {}

  Seconds run() {
    addPipelines(model_.training().globalBatch, {0, 0});
    return best_;
  }

 private:
  /// Pipelines are a set: the first devices ascend.
  void addPipelines(std::int64_t samplesLeft, DeviceId after) {
    if (samplesLeft == 0) {
      if (worstLack(model_, plan_)) return;
      best_ = std::min(best_, iterationTime(model_, plan_));
      return;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (used_[d] || (!plan_.empty() && devices_[d] <= after)) continue;
      plan_.emplace_back();
      addStage(d, 0, samplesLeft);
      plan_.pop_back();
    }
  }

  void addStage(std::size_t d, int first, std::int64_t samplesLeft) {
    used_[d] = true;
    const int count = model_.model().unitCount();
    for (int last = first + 1; last <= count; ++last) {
      plan_.back().stages.push_back({.devices = {devices_[d]}, .units = {first, last}});
      if (last == count) {
        chooseBatch(samplesLeft);
      } else {
        for (std::size_t next = 0; next < devices_.size(); ++next) {
          if (!used_[next]) addStage(next, last, samplesLeft);
        }
      }
      plan_.back().stages.pop_back();
    }
    used_[d] = false;
  }

  void chooseBatch(std::int64_t samplesLeft) {
    const std::size_t index = plan_.size() - 1;
    for (std::int64_t batch = 1; batch <= samplesLeft; ++batch) {
      for (int micro = 1; micro <= batch; ++micro) {
        plan_[index].localBatch = batch;
        plan_[index].microBatch = micro;
        addPipelines(samplesLeft - batch, plan_[index].stages.front().devices.front());
      }
    }
  }

  AnalyticProfile profile_;
  CostModel model_;
  std::vector<DeviceId> devices_;
  std::vector<bool> used_;
  std::vector<Pipeline> plan_;
  Seconds best_{std::numeric_limits<double>::infinity()};
};

Problem tinyProblem(std::uint64_t index) {
  const CounterRandom random(index, "tiny");
  const std::vector<std::string> clusters = {"1x2:cpu,1x1:cpu@0.5", "1x3:cpu", "1x1:cpu,1x1:cpu@0.25",
                                             "1x1:cpu,1x1:cpu@0.5,1x1:cpu@0.2"};
  Cluster cluster = *parseClusterShorthand(clusters[random.below(0, clusters.size())]);
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n)
    cluster.nodes[n].nic.bandwidth = (0.02 + random.uniform(10 + n)) * cluster.nodes[n].nic.bandwidth;
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 2;
  return problemOf(std::move(cluster), std::move(model), 1 + static_cast<std::int64_t>(random.below(1, 5)));
}

class AgainstBruteForce : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Planners, AgainstBruteForce, ::testing::Values("eth", "optimal"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(AgainstBruteForce, IsNeverFasterAndCloseToIt) {
  double worst = 1, sum = 0;
  int equal = 0, enumerated = 0;
  const int problems = sweep(24, 300);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(problems); ++i) {
    const Problem problem = tinyProblem(i);
    const Seconds optimum = BruteForce(problem).run();
    const auto plan = planWith(GetParam(), problem, {.options = {{"max_tp", "1"}, {"recompute", "none"}}});
    ASSERT_TRUE(plan) << plan.error().text();
    // The oracle knows stages of one device that recompute nothing; where a planner does more, it may win.
    const bool isEnumerated = std::ranges::all_of(plan->pipelines, [](const Pipeline& pipeline) {
      return std::ranges::all_of(pipeline.stages,
                                 [](const Stage& stage) { return stage.devices.size() == 1 && stage.recompute.empty(); });
    });
    enumerated += isEnumerated ? 1 : 0;
    if (isEnumerated) {
      ASSERT_GE(plan->predicted->iteration.value, optimum.value * (1 - 1e-12)) << "problem " << i;
    }
    ASSERT_LE(plan->predicted->lowerBound, optimum) << "problem " << i;
    const double ratio = plan->predicted->iteration / optimum;
    worst = std::max(worst, ratio);
    sum += ratio;
    equal += ratio < 1 + 1e-9 ? 1 : 0;
  }
  RecordProperty("equal", equal);
  std::cout << GetParam() << " against brute force: equal in " << equal << " of " << problems << ", mean " << sum / problems
            << ", worst " << worst << '\n';
  EXPECT_GT(enumerated, 3 * problems / 4);
  EXPECT_LT(worst, GetParam() == std::string("eth") ? 1.3 : 1.02);
}

// The other one counts and prunes; this one is too simple to be wrong.
TEST(Oracle, FindsWhatIsAtLeastAsFast) {
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(sweep(6, 60)); ++i) {
    const Problem problem = tinyProblem(i);
    const Seconds optimum = BruteForce(problem).run();
    Oracle oracle(problem);
    const auto found = oracle.fasterThan({std::numeric_limits<double>::infinity()}, Oracle::Measure::Reported);
    ASSERT_TRUE(found) << i;
    EXPECT_LE(found->time.value, optimum.value * (1 + 1e-12)) << i;
    Plan plan{.cluster = problem.cluster, .model = problem.model, .training = problem.training, .pipelines = found->pipelines};
    const Evaluation evaluation = evaluate(plan, AnalyticProfile(plan.model, plan.training), false);
    ASSERT_TRUE(evaluation.valid()) << i << ": " << evaluation.violations.front().what;
    EXPECT_EQ(evaluation.plan.predicted->iteration, found->time) << i;
    EXPECT_FALSE(oracle.fasterThan(found->time, Oracle::Measure::Reported)) << i;
  }
}

}  // namespace
}  // namespace evenkeel
