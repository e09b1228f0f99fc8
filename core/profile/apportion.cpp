// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/apportion.h"

#include <cmath>

#include "core/profile/analytic_profile.h"

namespace evenkeel {
namespace {

std::vector<Op> opsOfPart(LayerPart part) {
  std::vector<Op> ops;
  const auto add = [&](UnitKind kind) { ops.insert(ops.end(), opsOf(kind).begin(), opsOf(kind).end()); };
  switch (part) {
    case LayerPart::Embedding: add(UnitKind::Embedding); break;
    case LayerPart::Layer:
      add(UnitKind::Attention);
      add(UnitKind::Mlp);
      break;
    case LayerPart::Head: add(UnitKind::Head); break;
  }
  return ops;
}

double share(double part, double whole, std::size_t count) { return whole > 0 ? part / whole : 1.0 / static_cast<double>(count); }

}  // namespace

Apportioner::Apportioner(const Model& model, const Training& training) : model_(model), training_(training) {}

std::vector<OpCost> Apportioner::costsOf(const std::vector<Op>& ops, const DeviceType& device, int tp,
                                         std::int64_t samples) const {
  const AnalyticProfile analytic(model_, training_);
  std::vector<OpCost> costs;
  for (const Op op : ops) costs.push_back(analytic.cost(device, op, tp, samples));
  return costs;
}

void Apportioner::add(DeviceProfile& profile, const DeviceType& device, LayerPart part, int tp, std::int64_t samples,
                      const LayerPoint& point, bool withoutProjection) const {
  const std::vector<Op> ops = withoutProjection ? std::vector{Op::FinalNorm} : opsOfPart(part);
  const std::vector<OpCost> costs = costsOf(ops, device, tp, samples);
  Seconds forward, backward;
  Bytes saved;
  for (const OpCost& cost : costs) {
    forward += cost.forward;
    backward += cost.backward;
    saved += cost.saved;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ProfilePoint& p = profile.points[{ops[i], tp}][samples];
    p.forward = share(costs[i].forward.value, forward.value, ops.size()) * point.forward;
    p.backward = share(costs[i].backward.value, backward.value, ops.size()) * point.backward;
    if (point.saved) {
      const double part_ = share(static_cast<double>(costs[i].saved.value), static_cast<double>(saved.value), ops.size());
      p.saved = Bytes{std::llround(part_ * static_cast<double>(point.saved->value))};
    }
    p.source = ops.size() == 1 ? ValueSource::Imported : ValueSource::Apportioned;
  }
}

void Apportioner::addSum(DeviceProfile& profile, const DeviceType& device, LayerPart part, int tp, std::int64_t samples,
                         Seconds sum) const {
  Seconds forward, backward;
  for (const OpCost& cost : costsOf(opsOfPart(part), device, tp, samples)) {
    forward += cost.forward;
    backward += cost.backward;
  }
  const double forwardShare = share(forward.value, (forward + backward).value, 2);
  add(profile, device, part, tp, samples, {forwardShare * sum, (1 - forwardShare) * sum, {}});
  for (const Op op : opsOfPart(part)) profile.points[{op, tp}][samples].source = ValueSource::Apportioned;
}

}  // namespace evenkeel
