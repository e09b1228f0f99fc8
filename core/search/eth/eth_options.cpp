// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/eth_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/words.h"
#include "core/search/session.h"

namespace evenkeel {
namespace {

/// The value of option `name` among words that stand for something; `otherwise` where it is absent.
template <typename Value>
Result<Value> wordOption(const PlannerOptions& options, const std::string& name, Value otherwise,
                         std::initializer_list<std::pair<std::string_view, Value>> words) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  std::string known;
  for (const auto& [word, value] : words) {
    if (found->second == word) return value;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return invalidInput("--planner-option " + name, fmt::format("is \"{}\"", found->second), "expected one of " + known);
}

Result<bool> switchOption(const PlannerOptions& options, const std::string& name) {
  return wordOption(options, name, true, {{"on", true}, {"off", false}});
}

Result<double> alphaOption(const PlannerOptions& options, double otherwise) {
  const auto found = options.find("alpha");
  if (found == options.end()) return otherwise;
  const auto value = parseNumber<double>(found->second);
  if (!value || !(*value > 0))
    return invalidInput("--planner-option alpha", fmt::format("is \"{}\"", found->second), "expected a number above 0");
  return *value;
}

}  // namespace

std::span<const PlannerOptionInfo> ethOptionInfos() {
  static const std::vector<PlannerOptionInfo> known = [] {
    std::vector<PlannerOptionInfo> all(constraintInfos().begin(), constraintInfos().end());
    const std::initializer_list<PlannerOptionInfo> own = {
        {"cache", "on|off", "balance each composition once (off: for every grouping again)"},
        {"skip", "on|off", "leave out groupings that cannot win by the two bounds"},
        {"alpha", "A", "trust in the approximate bound of skipping, 1.5 unless said; smaller skips more"},
        {"order", "variance|generated", "even groupings first, or as they are generated"},
        {"dp", "on|off", "dynamic programming over contiguous devices"},
        {"recompute", "stage|global|none", "ops that are recomputed: each stage its own, one set for all, none"}};
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }();
  return known;
}

Result<EthOptions> parseEthOptions(const PlannerOptions& options) {
  EthOptions parsed;
  const auto pipelines = integerOption(options, "pipelines", kMaxDevices);
  if (!pipelines) return pipelines.error();
  parsed.mostPipelines = static_cast<int>(std::min<std::int64_t>(*pipelines, kMaxDevices));
  for (const auto& [name, field] :
       {std::pair{"cache", &EthOptions::cache}, {"skip", &EthOptions::skip}, {"dp", &EthOptions::dynamicProgramming}}) {
    const auto value = switchOption(options, name);
    if (!value) return value.error();
    parsed.*field = *value;
  }
  const auto ordered = wordOption(options, "order", true, {{"variance", true}, {"generated", false}});
  if (!ordered) return ordered.error();
  parsed.ordered = *ordered;
  const auto alpha = alphaOption(options, parsed.alpha);
  if (!alpha) return alpha.error();
  parsed.alpha = *alpha;
  const auto recompute =
      wordOption(options, "recompute", RecomputeScope::Stage,
                 {{"stage", RecomputeScope::Stage}, {"global", RecomputeScope::Global}, {"none", RecomputeScope::None}});
  if (!recompute) return recompute.error();
  parsed.recompute = *recompute;
  return parsed;
}

}  // namespace evenkeel
