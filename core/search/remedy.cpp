// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/remedy.h"

#include <fmt/format.h>

#include <functional>

#include "core/plan/features.h"
#include "core/profile/analytic_profile.h"
#include "core/search/session.h"
#include "core/search/uniform/uniform.h"

namespace evenkeel {
namespace {

/// Evaluations after which a change counts as no help: the answer must not take longer than the search.
constexpr std::int64_t kMostTries = 2000;

/// Feasibility depends on bytes, which the analytic profile counts for any problem; a measured profile knows only its own.
bool isFeasible(const Problem& problem, const Constraints& constraints, const SearchTask& task, std::stop_token stop) {
  const AnalyticProfile profile(problem.model, problem.training);
  const SearchTask changed{
      .problem = problem, .profile = &profile, .budget = {.effort = kMostTries, .threads = task.budget.threads}, .options = {}};
  std::stop_source found;
  const std::stop_callback forward(stop, [&] { found.request_stop(); });
  struct StopAtFirst final : SearchObserver {
    explicit StopAtFirst(std::stop_source& source) : source_(source) {}
    void onIncumbent(const Incumbent&) override { source_.request_stop(); }
    std::stop_source& source_;
  } observer(found);
  SearchSession session("uniform", changed, observer, found.get_token(), constraints);
  considerUniformGrid(session);
  return !session.incumbent().empty();
}

struct Change {
  std::string text;
  std::function<bool(Problem&)> apply;  // false: does not apply to this problem
};

std::vector<Change> changes(const Problem& problem) {
  std::vector<Change> all;
  const bool here = runsHere(problem.cluster);
  for (int zero = problem.training.zeroStage + 1; zero <= 2 && !here; ++zero) {
    all.push_back({fmt::format("plan with --zero {}", zero), [zero](Problem& p) {
                     p.training.zeroStage = zero;
                     return true;
                   }});
  }
  if (!here && problem.training.attention == AttentionKernel::Unfused) {
    all.push_back({"plan with the fused attention kernel", [](Problem& p) {
                     p.training.attention = AttentionKernel::Fused;
                     return true;
                   }});
  }
  for (const std::int64_t part : {2, 4, 8}) {
    const std::int64_t sequence = problem.training.sequenceLength / part;
    if (sequence < 1) break;
    all.push_back({fmt::format("plan with --sequence-length {}", sequence), [sequence](Problem& p) {
                     p.training.sequenceLength = sequence;
                     return true;
                   }});
  }
  for (const int times : {2, 4, 8, 16}) {
    all.push_back({fmt::format("use {} times as many nodes", times), [times](Problem& p) {
                     const std::vector<Node> nodes = p.cluster.nodes;
                     for (int copy = 1; copy < times; ++copy) {
                       for (Node node : nodes) {
                         node.name += fmt::format("-copy{}", copy);
                         p.cluster.nodes.push_back(std::move(node));
                       }
                     }
                     return p.cluster.deviceCount() <= kMaxDevices;
                   }});
  }
  return all;
}

}  // namespace

Result<Plan> withRemedy(Result<Plan> result, const SearchTask& task, std::stop_token stop) {
  if (result || result.error().code != Error::Code::Infeasible) return result;
  Error error = std::move(result).error();
  const auto constraints = constraintsFrom(task.options, task.problem.cluster);  // none where a planner does not offer them
  const Constraints asked = constraints ? *constraints : Constraints{};
  if (asked.any() && isFeasible(task.problem, {}, task, stop)) {
    error.remedy = "leave out";
    for (const std::string& option : asked.given) error.remedy += " --planner-option " + option;
    return error;
  }
  for (const Change& change : changes(task.problem)) {
    Problem changed = task.problem;
    if (stop.stop_requested() || !change.apply(changed)) break;
    if (!isFeasible(changed, asked, task, stop)) continue;
    error.remedy = change.text;
    break;
  }
  if (error.remedy.empty()) error.remedy = "draw devices with more memory, or choose a smaller model";
  return error;
}

}  // namespace evenkeel
