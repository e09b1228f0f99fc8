// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/analytic_profile.h"

#include <cassert>

#include "core/profile/op_work.h"

namespace evenkeel {
namespace {

/// Fitted to V100 measurements per layer: 3.0 / 12.1 % off forward / backward at tp 1 (algorithms.md 3).
constexpr DeviceClass kAccelerator = {.forwardEfficiency = 0.72,
                                      .backwardEfficiency = 0.83,
                                      .bandwidthEfficiency = 0.75,
                                      .forwardOverhead = fromMicroseconds(20),
                                      .backwardOverhead = fromMicroseconds(40),
                                      .optimizerTraffic = 30,  // fp32: 4 reads, 3 writes; the 2-byte weight
                                      .reserved = {std::int64_t{1} << 30U}};

/// One core, fp32, OpenBLAS, against bench_unit_times on a Xeon with AVX-512 (lowest of 14 runs): units of tiny-gpt at
/// micro-batches of 4 and 8 within 15 %, but the head's backward 25 % above. Small tensors live in the caches, hence the
/// bandwidth.
constexpr DeviceClass kCpuCore = {.forwardEfficiency = 0.92,
                                  .backwardEfficiency = 0.95,
                                  .bandwidthEfficiency = 0.75,
                                  .forwardOverhead = fromMicroseconds(12),
                                  .backwardOverhead = fromMicroseconds(24),
                                  .optimizerTraffic = 28,  // fp32: weight, gradient, two moments; three written
                                  .reserved = {std::int64_t{192} << 20U}};

}  // namespace

const DeviceClass& deviceClassOf(const DeviceType& device) {
  const std::string_view name = device.name;
  return name.substr(0, name.find('@')) == "cpu" ? kCpuCore : kAccelerator;
}

Seconds allReduceTime(Bytes size, int members, const LinkSpec& link) {
  if (members <= 1) return {};
  const double steps = 2.0 * (members - 1);
  const BytesPerSecond bandwidth = link.bandwidthFor(size);
  return steps / members * (size / bandwidth) + steps * link.latency;
}

AnalyticProfile::AnalyticProfile(Model model, Training training) : model_(std::move(model)), training_(std::move(training)) {}

OpCost AnalyticProfile::cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const {
  assert(device.has(training_.precision));
  const OpWork work = opWork(model_, training_, op, tp, samples);
  const DeviceClass& c = deviceClassOf(device);
  const FlopsPerSecond peak = device.peak.at(training_.precision) * device.speed;
  const BytesPerSecond bandwidth = device.memoryBandwidth * (c.bandwidthEfficiency * device.speed);
  const Seconds traffic = work.forwardTraffic / bandwidth;

  OpCost cost;
  if (work.runs) {
    cost.forward = work.forward / (peak * c.forwardEfficiency) + traffic + c.forwardOverhead / device.speed;
    cost.backward =
        work.backward / (peak * c.backwardEfficiency) + kBackwardTraffic * traffic + c.backwardOverhead / device.speed;
  }
  if (work.forwardReduced.value > 0) cost.forward += allReduceTime(work.forwardReduced, tp, device.intra);
  if (work.backwardReduced.value > 0) cost.backward += allReduceTime(work.backwardReduced, tp, device.intra);
  cost.weights = {work.parameters * bytesOf(training_.precision)};
  cost.saved = work.saved;
  cost.input = work.input;
  cost.boundary = {training_.sequenceLength * samples * model_.hidden * bytesOf(training_.precision)};
  cost.transient = work.transient;
  return cost;
}

Bytes AnalyticProfile::reserved(const DeviceType& device) const { return deviceClassOf(device).reserved; }

}  // namespace evenkeel
