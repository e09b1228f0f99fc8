// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/analytic_profile.h"

#include <cassert>

#include "core/profile/op_work.h"

namespace evenkeel {

Seconds allReduceTime(Bytes size, int members, const LinkSpec& link, const DeviceClass& deviceClass) {
  if (members <= 1) return {};
  const CollectiveShare share = deviceClass.collectiveOf(members);
  // A table was measured between the devices themselves.
  const BytesPerSecond bandwidth = link.table.empty() ? link.bandwidth * share.bandwidth : link.bandwidthFor(size);
  return 2.0 * (members - 1) / members * (size / bandwidth) + share.latencies * link.latency;
}

namespace {

/// The times of the table, where it has some for the type.
void useTable(const Model& model, const DeviceType& device, Op op, std::int64_t samples, OpCost& cost) {
  const OpaqueLayer* const layer = opaqueLayer(model, op);
  if (layer == nullptr) return;
  const auto measured = layer->times.find(device.name.substr(0, device.name.find('@')));
  if (measured == layer->times.end()) return;
  const double count = static_cast<double>(samples) / device.speed;
  cost.forward = count * measured->second.forward;
  cost.backward = count * measured->second.backward;
  cost.source = ValueSource::Imported;
}

/// Where the ops of our worker (runtime/nn/units.cpp) keep something else than the usual count. Checked by bench_runtime_memory.
void countAsOurWorker(const Model& model, const Training& training, Op op, int tp, std::int64_t samples, bool dropout, const OpWork& work, OpCost& cost) {
  if (!dropout) cost.saved -= work.dropoutSaved;
  const std::int64_t bytes = bytesOf(training.precision), tokens = training.sequenceLength * samples;
  const Bytes value{bytes * tokens * (model.kvHeads * model.headDim / std::min(tp, model.kvHeads))};
  const Bytes query{bytes * tokens * (model.heads * model.headDim / tp)};
  const Bytes expansion = std::max(Bytes{}, query - value);  // of keys and values, each repeated for the query heads that share it
  switch (op) {
    case Op::Norm1:
    case Op::Norm2:
    case Op::FinalNorm:
      if (model.norm == Norm::RmsNorm) cost.saved += work.saved;  // the input, and what is scaled before the weight comes in
      break;
    case Op::Score: cost.saved += expansion; break;
    case Op::AttentionDropout:
      if (!dropout) cost.input = value;  // it does nothing: a run that begins with it begins with the context's value
      break;
    case Op::Context:
      cost.saved += expansion;
      cost.input += expansion;  // its input less what it keeps are the probabilities, as before
      break;
    case Op::Loss:
      // The logits are fp32 already, and gone when their gradient comes.
      if (training.precision == Precision::Fp32) cost.transient -= Bytes{bytes * tokens * (model.paddedVocab() / tp)};
      break;
    default: break;
  }
}

}  // namespace

AnalyticProfile::AnalyticProfile(Model model, Training training, AnalyticOptions options)
    : model_(std::move(model)), training_(std::move(training)), options_(options) {}

OpCost AnalyticProfile::cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const {
  assert(device.has(training_.precision));
  const OpWork work = opWork(model_, training_, op, tp, samples);
  const DeviceClass& c = options_.deviceClass != nullptr ? *options_.deviceClass : deviceClassOf(device);
  const FlopsPerSecond peak = device.peak.at(training_.precision) * device.speed;
  const BytesPerSecond bandwidth = device.memoryBandwidth * (c.bandwidthEfficiency * device.speed);
  const Seconds traffic = work.forwardTraffic / bandwidth;
  const bool isResidual = op == Op::Dropout1 || op == Op::Dropout2;
  const Passes passes = options_.dropout && isResidual ? c.residualDropout : c.passes[static_cast<std::size_t>(op)];

  OpCost cost;
  if (work.runs || (options_.dropout && work.forwardTraffic > Bytes{})) {
    cost.forward = work.forward / (peak * c.forwardEfficiency) + passes.forward * traffic + c.forwardOverhead / device.speed;
    cost.backward = work.backward / (peak * c.backwardEfficiency) + passes.backward * traffic + c.backwardOverhead / device.speed;
  }
  if (model_.opaque) useTable(model_, device, op, samples, cost);
  if (work.forwardReduced.value > 0)
    cost.forward += allReduceTime(work.forwardReduced, tp, device.intra, c) + c.forwardReduceOverhead;
  if (work.backwardReduced.value > 0)
    cost.backward += allReduceTime(work.backwardReduced, tp, device.intra, c) + c.backwardReduceOverhead;
  cost.weights = {work.parameters * bytesOf(training_.precision)};
  cost.saved = work.saved;
  cost.input = work.input;
  cost.boundary = {training_.sequenceLength * samples * model_.hidden * bytesOf(training_.precision) /
                   (training_.sequenceParallel ? tp : 1)};
  cost.transient = work.transient;
  if (device.runsHere) countAsOurWorker(model_, training_, op, tp, samples, options_.dropout, work, cost);
  return cost;
}

Bytes AnalyticProfile::reserved(const DeviceType& device) const { return deviceClassOf(device).reserved; }

}  // namespace evenkeel
