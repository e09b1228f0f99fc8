// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/table_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/profile/importers.h"

namespace evenkeel {
namespace {

using Points = std::map<std::int64_t, ProfilePoint>;

/// The point for any number of samples. `scaled` multiplies times and sizes of a point by what the analytic profile makes of the
/// other number of samples.
template <class Scale>
ProfilePoint pointFor(const Points& points, std::int64_t samples, const Scale& scaled) {
  const auto above = points.lower_bound(samples);
  if (above != points.end() && above->first == samples) return above->second;
  const bool isBelowAll = above == points.begin();
  if (isBelowAll || points.size() == 1) {
    const auto& [known, point] = isBelowAll ? *above : *points.begin();
    return scaled(point, known);
  }
  const auto high = above == points.end() ? std::prev(above) : above;
  const auto low = std::prev(high);
  const double at =
      static_cast<double>(samples - low->first) / static_cast<double>(high->first - low->first);  // above 1: extrapolated
  const auto between = [&](Seconds a, Seconds b) { return std::max(Seconds{}, a + at * (b - a)); };
  ProfilePoint point = low->second;
  point.forward = between(low->second.forward, high->second.forward);
  point.backward = between(low->second.backward, high->second.backward);
  if (point.saved && high->second.saved) {
    const auto a = static_cast<double>(point.saved->value), b = static_cast<double>(high->second.saved->value);
    point.saved = Bytes{std::max<std::int64_t>(0, std::llround(a + at * (b - a)))};
  }
  point.source = ValueSource::Interpolated;
  return point;
}

double ratio(Seconds a, Seconds b) { return b > Seconds{} ? a / b : 1.0; }

/// A point of one (tp, samples) as it would be at another, by the analytic profile's costs there and here.
ProfilePoint scaledPoint(ProfilePoint point, const OpCost& there, const OpCost& here) {
  point.forward = ratio(there.forward, here.forward) * point.forward;
  point.backward = ratio(there.backward, here.backward) * point.backward;
  if (point.saved && here.saved > Bytes{}) {
    point.saved = Bytes{std::llround(static_cast<double>(point.saved->value) * (there.saved / here.saved))};
  }
  point.source = ValueSource::Interpolated;
  return point;
}

}  // namespace

TableProfile::TableProfile(ProfileTable table, Model model, Training training, std::string description, AnalyticOptions options)
    : table_(std::move(table)), analytic_(std::move(model), std::move(training), options), description_(std::move(description)) {}

const DeviceProfile* TableProfile::find(const DeviceType& device) const {
  const std::string_view name = device.name;
  const auto found = table_.devices.find(name.substr(0, name.find('@')));
  return found == table_.devices.end() ? nullptr : &found->second;
}

OpCost TableProfile::cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const {
  OpCost cost = analytic_.cost(device, op, tp, samples);
  const DeviceProfile* profile = find(device);
  if (profile == nullptr) return cost;
  // The nearest tp that has points, the smaller of two as near.
  const Points* points = nullptr;
  int nearest = 0;
  for (auto at = profile->points.lower_bound({op, 0}); at != profile->points.end() && at->first.op == op; ++at) {
    if (at->second.empty()) continue;
    const auto distance = [&](int other) { return std::abs(std::log2(static_cast<double>(other) / tp)); };
    if (points != nullptr && distance(at->first.tp) >= distance(nearest)) continue;
    points = &at->second;
    nearest = at->first.tp;
  }
  if (points == nullptr) return cost;
  ProfilePoint point = pointFor(*points, samples, [&](const ProfilePoint& known, std::int64_t knownSamples) {
    return scaledPoint(known, analytic_.cost(device, op, nearest, samples), analytic_.cost(device, op, nearest, knownSamples));
  });
  if (nearest != tp) point = scaledPoint(point, cost, analytic_.cost(device, op, nearest, samples));
  cost.forward = point.forward / device.speed;
  cost.backward = point.backward / device.speed;
  if (point.saved) cost.saved = *point.saved;
  cost.source = point.source;
  return cost;
}

Bytes TableProfile::reserved(const DeviceType& device) const {
  const DeviceProfile* profile = find(device);
  return profile != nullptr && profile->reserved ? *profile->reserved : analytic_.reserved(device);
}

Result<std::unique_ptr<Profile>> profileFromArgument(const std::string& argument, const Cluster& cluster, const Model& model,
                                                     const Training& training, AnalyticOptions options) {
  if (argument.empty()) return std::unique_ptr<Profile>(std::make_unique<AnalyticProfile>(model, training, options));
  if (model.opaque)
    return invalidInput(argument, "measures the ops of a transformer",
                        model.name + " brings its own times: plan without --profile");
  auto table = importProfile(argument, model, training);
  if (!table) return std::move(table).error();
  const ProfileConditions& conditions = table->conditions;
  if (conditions.sequenceLength != 0 && conditions.sequenceLength != training.sequenceLength) {
    return invalidInput(argument,
                        fmt::format("is of sequence length {}, not {}", conditions.sequenceLength, training.sequenceLength),
                        "give --sequence-length or another profile");
  }
  if (conditions.precision && *conditions.precision != training.precision) {
    return invalidInput(argument,
                        fmt::format("is of precision {}, not {}", name(*conditions.precision), name(training.precision)),
                        "give --precision or another profile");
  }
  const std::string what = fmt::format("profile {}", argument);
  const TableProfile profile(*table, model, training, what);
  std::string missing;
  std::size_t unknown = 0;
  for (const DeviceType& type : cluster.deviceTypes) {
    if (profile.knows(type)) continue;
    missing += (unknown++ == 0 ? "" : ", ") + type.name;
  }
  if (unknown == cluster.deviceTypes.size())
    return invalidInput(argument, fmt::format("has nothing of {}", missing),
                        "plan without --profile, or with one of these devices");
  return std::unique_ptr<Profile>(std::make_unique<TableProfile>(
      *std::move(table), model, training, unknown == 0 ? what : fmt::format("{}; {} from the device table", what, missing), options));
}

}  // namespace evenkeel
