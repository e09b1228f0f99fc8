// SPDX-License-Identifier: GPL-3.0-or-later
// Better hardware makes no plan slower, and what carries traffic moves the time (field-faults: properties that move nothing).
#include <gtest/gtest.h>

#include <random>

#include "core/cost/evaluate.h"
#include "core/profile/analytic_profile.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

class RandomCase {
 public:
  explicit RandomCase(std::uint32_t seed) : random_(seed) {
    drawCluster();
    plan_.model = *modelFromArgument("gpt3-350m");
    plan_.training.sequenceLength = 512;
    plan_.training.precision = Precision::Fp16;
    plan_.training.zeroStage = static_cast<int>(below(3));
    plan_.training.gradientSync = static_cast<GradientSync>(below(3));
    drawPlan();
    drawSwitch();
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  void drawCluster() {
    static const std::vector<const char*> kTypes = {"V100-32-SXM2", "A100-80-SXM", "T4", "RTX4090"};
    std::string text;
    const std::size_t groups = 1 + below(3);
    for (std::size_t g = 0; g < groups; ++g)
      text += (g > 0 ? "," : "") + std::to_string(1 + below(3)) + "x" + std::to_string(1 << below(3)) + ":" +
              kTypes[(g + below(2)) % 4];
    plan_.cluster = *parseClusterShorthand(text);
    for (std::size_t a = 0; a < plan_.cluster.nodes.size(); ++a) {
      for (std::size_t b = a + 1; b < plan_.cluster.nodes.size(); ++b) {
        if (below(2) == 0)
          plan_.cluster.links.push_back(
              {static_cast<int>(a),
               static_cast<int>(b),
               {fromGbs(1.0 + static_cast<double>(below(20))), fromMicroseconds(static_cast<double>(below(40))), {}}});
      }
    }
  }

  /// One switch over all nodes, in every third case.
  void drawSwitch() {
    if (below(3) != 0) return;
    Switch all{.name = "switch", .members = {}, .bandwidth = fromGbs(10), .total = fromGbs(3.0 + static_cast<double>(below(30))), .latency = {}};
    for (const Node& node : plan_.cluster.nodes) all.members.push_back(node.name);
    plan_.cluster.switches.push_back(std::move(all));
  }

  /// Each node's devices as one or two tp groups, shuffled and dealt into pipelines.
  void drawPlan() {
    std::vector<std::vector<DeviceId>> groups;
    for (std::size_t n = 0; n < plan_.cluster.nodes.size(); ++n) {
      const std::size_t count = plan_.cluster.nodes[n].devices.size();
      const std::size_t tp = std::min<std::size_t>(count, std::size_t{1} << below(3));
      for (std::size_t first = 0; first + tp <= count; first += tp) {
        groups.emplace_back();
        for (std::size_t d = first; d < first + tp; ++d) groups.back().push_back({static_cast<int>(n), static_cast<int>(d)});
      }
    }
    std::ranges::shuffle(groups, random_);
    const std::size_t pipelines = 1 + below(std::min<std::size_t>(3, groups.size()));
    plan_.pipelines.resize(pipelines);
    for (std::size_t g = 0; g < groups.size() && g / pipelines < 6; ++g) {
      Stage stage;
      stage.devices = groups[g];
      stage.tp = static_cast<int>(groups[g].size());
      plan_.pipelines[g % pipelines].stages.push_back(std::move(stage));
    }
    plan_.training.globalBatch = 0;
    for (Pipeline& pipeline : plan_.pipelines) {
      pipeline.microBatch = 1 + static_cast<int>(below(3));
      pipeline.localBatch = static_cast<std::int64_t>(pipeline.microBatch) * (1 + static_cast<std::int64_t>(below(12))) +
                            static_cast<std::int64_t>(below(2));
      plan_.training.globalBatch += pipeline.localBatch;
      const int units = plan_.model.unitCount(), stages = static_cast<int>(pipeline.stages.size());
      for (int s = 0; s < stages; ++s)
        pipeline.stages[static_cast<std::size_t>(s)].units = {units * s / stages, units * (s + 1) / stages};
    }
  }

  std::mt19937 random_;
  Plan plan_;
};

struct Times {
  double simulated, closedForm;
  double pipelines = 0;  // sum over all, the faster ones too
};
Times timesOf(const Plan& plan) {
  const AnalyticProfile profile(plan.model, plan.training);
  const Evaluation evaluation = evaluate(plan, profile, false);
  EXPECT_TRUE(evaluation.plan.predicted.has_value()) << (evaluation.violations.empty() ? "" : evaluation.violations.front().what);
  Times times{evaluation.plan.predicted->iteration.value, evaluation.closedForm.value};
  for (const Pipeline& pipeline : evaluation.plan.pipelines) times.pipelines += pipeline.predictedTime->value;
  return times;
}

/// Pipelines of at most two stages send through each link in one direction only: nothing can overtake.
bool hasContention(const Plan& plan) {
  return std::ranges::any_of(plan.pipelines, [](const Pipeline& pipeline) { return pipeline.stages.size() > 2; });
}

constexpr double kRounding = 1 + 1e-12;
constexpr double kAnomaly = 1.10;  // scheduling anomalies of 1F1B over shared links

void expectNoWorse(const Plan& before, const Plan& after, const Times& times, const std::string& what) {
  const Times better = timesOf(after);
  EXPECT_LE(better.closedForm, times.closedForm * kRounding) << what;
  EXPECT_LE(better.simulated, times.simulated * (hasContention(before) ? kAnomaly : kRounding)) << what;
}

TEST(Sensitivity, NoFigureThatGrowsMakesAPlanSlower) {
  for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(sweep(25, 200)); ++seed) {
    const Plan plan = RandomCase(seed).plan();
    const Times times = timesOf(plan);
    const std::string name = "case " + std::to_string(seed);
    for (std::size_t t = 0; t < plan.cluster.deviceTypes.size(); ++t) {
      Plan better = plan;
      for (auto& [precision, peak] : better.cluster.deviceTypes[t].peak) peak = 1.7 * peak;
      expectNoWorse(plan, better, times, name + ", peak of type " + std::to_string(t));
      better = plan;
      better.cluster.deviceTypes[t].memoryBandwidth = 1.7 * better.cluster.deviceTypes[t].memoryBandwidth;
      expectNoWorse(plan, better, times, name + ", memory bandwidth of type " + std::to_string(t));
    }
    for (std::size_t n = 0; n < plan.cluster.nodes.size(); ++n) {
      Plan better = plan;
      better.cluster.nodes[n].intra.bandwidth = 1.7 * better.cluster.nodes[n].intra.bandwidth;
      expectNoWorse(plan, better, times, name + ", inside node " + std::to_string(n));
      better = plan;
      better.cluster.nodes[n].nic.bandwidth = 1.7 * better.cluster.nodes[n].nic.bandwidth;
      expectNoWorse(plan, better, times, name + ", NIC of node " + std::to_string(n));
    }
    for (std::size_t s = 0; s < plan.cluster.switches.size(); ++s) {
      Plan better = plan;
      better.cluster.switches[s].total = 1.7 * better.cluster.switches[s].total;
      expectNoWorse(plan, better, times, name + ", total of the switch");
    }
    for (std::size_t l = 0; l < plan.cluster.links.size(); ++l) {
      Plan better = plan;
      better.cluster.links[l].spec.bandwidth = 1.7 * better.cluster.links[l].spec.bandwidth;
      expectNoWorse(plan, better, times, name + ", link " + std::to_string(l));
    }
  }
}

/// Nodes whose devices stand in neighbouring stages, first device to first device at least.
bool carriesActivations(const Plan& plan, const Link& link) {
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s + 1 < pipeline.stages.size(); ++s) {
      const int a = pipeline.stages[s].devices.front().node, b = pipeline.stages[s + 1].devices.front().node;
      if ((a == link.first && b == link.second) || (a == link.second && b == link.first)) return true;
    }
  }
  return false;
}

TEST(Sensitivity, EveryDrawnLinkThatCarriesActivationsMovesItsPipeline) {
  int links = 0;
  for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(sweep(25, 200)); ++seed) {
    const Plan plan = RandomCase(seed).plan();
    const Times times = timesOf(plan);
    for (std::size_t l = 0; l < plan.cluster.links.size(); ++l) {
      if (!carriesActivations(plan, plan.cluster.links[l])) continue;
      ++links;
      Plan worse = plan;
      worse.cluster.links[l].spec.bandwidth = 1e-3 * worse.cluster.links[l].spec.bandwidth;
      EXPECT_GT(timesOf(worse).pipelines, times.pipelines) << "case " << seed << ", link " << l;
    }
  }
  EXPECT_GT(links, 5);
}

}  // namespace
}  // namespace evenkeel
