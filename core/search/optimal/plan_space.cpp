// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/plan_space.h"

#include <algorithm>
#include <set>

#include "core/search/optimal/sync_rates.h"

namespace evenkeel::optimal {
namespace {

/// Samples of a replica for which the bound knows the exact time; beyond, classes that grow by an eighth.
constexpr std::int64_t kExactSamples = 8;
/// Where there is time for it, every number of samples up to here is planned with.
constexpr int kAllSamples = 16;

std::vector<std::pair<std::int64_t, std::int64_t>> sampleClasses(std::int64_t batch) {
  std::vector<std::pair<std::int64_t, std::int64_t>> classes;
  for (std::int64_t least = 1; least <= batch;) {
    const std::int64_t most = least < kExactSamples ? least : std::min(batch, least + least / kExactSamples);
    classes.emplace_back(least, most);
    least = most + 1;
  }
  return classes;
}

}  // namespace

PlanSpace::PlanSpace(const CostModel& model, Limits limits, std::optional<int> pipelines)
    : model_(model), limits_(std::move(limits)), pipelines_(pipelines), resources_(resourcesOf(model, limits_.devices)) {
  for (const Resource& resource : resources_) {
    amounts_.push_back(resource.amount);
    if (resource.level == 1) kinds_.push_back(resource.kind);
  }
}

StageOptions::Space PlanSpace::space(Purpose purpose, int holders) const {
  StageOptions::Space space{.purpose = purpose,
                            .devices = limits_.devices,
                            .kinds = kinds_,
                            .tps = limits_.tps,
                            .samples = {},
                            .holders = isSharded() ? holders : 1,
                            .mayRecompute = limits_.recompute || purpose == Purpose::Bound};
  std::set<int> choices;
  for (const int samples : microBatchChoices(batch())) choices.insert(samples);
  if (isTiny()) {
    for (int samples = 1; samples <= std::min<std::int64_t>(batch(), kAllSamples); ++samples) choices.insert(samples);
  }
  for (const int samples : choices) space.samples.emplace_back(samples, samples);
  return space;
}

const StageOptions& PlanSpace::options(int holders, int exchangers) {
  if (exchangers == 0) exchangers = holders;
  auto& options = options_[{isSharded() ? holders : 1, model_.training().zeroStage >= 2 ? exchangers : 1}];
  if (options) return *options;
  StageOptions::Space all = space(Purpose::Plan, holders);
  all.exchangers = exchangers;
  options = std::make_unique<StageOptions>(model_, std::move(all));
  return *options;
}

StageOptions PlanSpace::planBoundOptions() const { return {model_, space(Purpose::Bound, deviceCount())}; }

StageOptions PlanSpace::boundOptions() const {
  StageOptions::Space all = space(Purpose::Bound, deviceCount());
  all.samples = sampleClasses(batch());
  all.tps.clear();
  int most = 1;
  for (const Node& node : model_.cluster().nodes) most = std::max(most, static_cast<int>(node.devices.size()));
  const Model& m = model_.model();
  for (int tp = 1; tp <= most; ++tp) {
    if (m.heads % tp == 0 && (m.kvHeads % tp == 0 || tp % m.kvHeads == 0) && m.ffn % tp == 0 && m.paddedVocab() % tp == 0)
      all.tps.push_back(tp);
  }
  return {model_, std::move(all)};
}

Json PlanSpace::toJson(const std::vector<double>& prices) const {
  Json all = Json::array();
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    if (prices[r] == 0 && resources_[r].level > 1) continue;
    all.push_back(
        {{"type", model_.typeOfKind(resources_[r].kind).name}, {"level", resources_[r].level}, {"price", rounded(prices[r])}});
  }
  return all;
}

std::optional<std::vector<double>> PlanSpace::pricesFrom(const Json& search) const {
  const auto field = search.is_object() ? search.find(kPricesField) : search.end();
  if (field == search.end() || !field->is_array()) return std::nullopt;
  std::vector<double> prices(resources_.size(), 0.0);
  double sum = 0;
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    const Json wanted = {{"type", model_.typeOfKind(resources_[r].kind).name}, {"level", resources_[r].level}};
    const auto entry = std::ranges::find_if(*field, [&](Json one) {
      if (!one.is_object() || !one.contains("price") || !one["price"].is_number()) return false;
      one.erase("price");
      return one == wanted;
    });
    if (entry == field->end() && resources_[r].level == 1) return std::nullopt;
    if (entry == field->end()) continue;
    prices[r] = std::max(0.0, entry->at("price").get<double>());
    sum += prices[r] * amounts_[r];
  }
  if (!(sum > 0)) return std::nullopt;
  return normalized(std::move(prices));
}

std::vector<double> PlanSpace::normalized(std::vector<double> prices) const {
  double sum = 0;
  for (std::size_t r = 0; r < amounts_.size(); ++r) sum += prices[r] * amounts_[r];
  for (double& price : prices) price /= sum;
  return prices;
}

std::vector<double> PlanSpace::planSyncRates(int pipelines) const {
  // By node and index, so the ends tell.
  const bool isOneNode = limits_.devices.front().node == limits_.devices.back().node;
  return syncRates(model_, limits_.devices, Purpose::Plan, isOneNode ? Rings::InNode : Rings::BetweenNodes, pipelines);
}

std::vector<double> PlanSpace::firstPrices() const {
  std::vector<double> prices(resources_.size(), 0.0);
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    if (resources_[r].level > 1) continue;
    const DeviceType& type = model_.typeOfKind(resources_[r].kind);
    prices[r] = type.speed * type.peak.at(model_.training().precision).value;
  }
  return normalized(std::move(prices));
}

}  // namespace evenkeel::optimal
