// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/violations.h"

#include <fmt/format.h>

#include <numeric>
#include <unordered_map>

#include "core/plan/problem.h"

namespace evenkeel {
namespace {

class ShapeCheck {
 public:
  explicit ShapeCheck(const Plan& plan) : plan_(plan) {}

  std::vector<Violation> run() {
    if (plan_.pipelines.empty()) add("plan", "has no pipeline");
    for (std::size_t p = 0; p < plan_.pipelines.size(); ++p) checkPipeline(p);
    checkSamples();
    if (plan_.model.position == Position::Learned && plan_.training.sequenceLength > plan_.model.context) {
      add("training",
          fmt::format("sequence_length {} is longer than the {} learned positions of {}", plan_.training.sequenceLength,
                      plan_.model.context, plan_.model.name),
          fmt::format("at most {}", plan_.model.context));
    }
    if (plan_.model.opaque && plan_.training.sequenceLength != plan_.model.context) {
      add("training",
          fmt::format("sequence_length {} is not that of the layers of {}", plan_.training.sequenceLength, plan_.model.name),
          fmt::format("give the one that they were measured at, {}", plan_.model.context));
    }
    return std::move(found_);
  }

 private:
  void add(std::string where, std::string what, std::string remedy = {}) {
    found_.push_back({std::move(where), std::move(what), std::move(remedy)});
  }

  void checkPipeline(std::size_t p) {
    const Pipeline& pipeline = plan_.pipelines[p];
    const std::string where = fmt::format("pipeline {}", p);
    if (pipeline.localBatch < 1) add(where, fmt::format("trains {} samples", pipeline.localBatch), "at least 1");
    if (pipeline.microBatch < 1) add(where, fmt::format("has micro-batches of {} samples", pipeline.microBatch), "at least 1");
    else if (pipeline.microBatch > pipeline.localBatch) {
      add(where, fmt::format("has micro-batches of {} samples but trains only {}", pipeline.microBatch, pipeline.localBatch),
          fmt::format("micro_batch at most {}", pipeline.localBatch));
    }
    int next = 0;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const UnitRange units = pipeline.stages[s].units;
      checkStage(p, s);
      if (units.size() < 1)
        add(placeOf(p, s), fmt::format("holds no unit: [{}, {})", units.first, units.last), "every stage needs at least one");
      if (units.first > next) add(placeOf(p, s), fmt::format("units {} to {} are in no stage", next, units.first - 1));
      if (units.first < next) add(placeOf(p, s), fmt::format("begins with unit {}; {} comes next", units.first, next));
      next = std::max(next, units.last);
    }
    const int count = plan_.model.unitCount();
    if (next < count)
      add(where, fmt::format("units {} to {} are in no stage", next, count - 1), fmt::format("the model has {} units", count));
    if (next > count) add(where, fmt::format("ends with unit {}; the model has {} units", next - 1, count));
  }

  void checkStage(std::size_t p, std::size_t s) {
    const Pipeline& pipeline = plan_.pipelines[p];
    const Stage& stage = pipeline.stages[s];
    const std::string where = placeOf(p, s);
    if (stage.tp < 1 || stage.dp < 1 ||
        stage.devices.size() != static_cast<std::size_t>(stage.tp) * static_cast<std::size_t>(stage.dp)) {
      add(where, fmt::format("has {} devices for tp {} x dp {}", stage.devices.size(), stage.tp, stage.dp), "tp x dp devices");
      return;
    }
    for (const DeviceId device : stage.devices) checkDevice(device, where);
    checkTp(stage, where);
    checkShares(pipeline, stage, where);
    for (const Recompute& recompute : stage.recompute) {
      if (recompute.units.first < stage.units.first || recompute.units.last > stage.units.last || recompute.units.size() < 1) {
        add(where, fmt::format("recomputes units [{}, {}) but holds [{}, {})", recompute.units.first, recompute.units.last,
                               stage.units.first, stage.units.last));
      }
    }
  }

  void checkDevice(DeviceId device, const std::string& where) {
    const std::string name = plan_.cluster.nameOf(device);
    if (!plan_.cluster.contains(device)) {
      add(where, fmt::format("device {} is not in the cluster", name));
      return;
    }
    const auto [first, isNew] = firstUse_.emplace(device, where);
    if (!isNew)
      add(where, fmt::format("device {} is already in {}", name, first->second), "every device is in at most one stage");
    const DeviceType& type = plan_.cluster.typeOf(device);
    if (auto obstacle = obstacleTo(plan_.model, plan_.training.precision, type))
      add(where, fmt::format("{} ({}) {}", type.name, name, obstacle->what), std::move(obstacle->remedy));
  }

  void checkTp(const Stage& stage, const std::string& where) {
    const Model& model = plan_.model;
    const int tp = stage.tp;
    if (model.heads % tp != 0) add(where, fmt::format("tp {} does not divide {} heads", tp, model.heads));
    if (model.kvHeads % tp != 0 && tp % model.kvHeads != 0) {
      add(where, fmt::format("tp {} neither divides {} KV heads nor is a multiple of them", tp, model.kvHeads));
    }
    if (model.ffn % tp != 0) add(where, fmt::format("tp {} does not divide the MLP width {}", tp, model.ffn));
    if (model.paddedVocab() % tp != 0)
      add(where, fmt::format("tp {} does not divide the padded vocabulary {}", tp, model.paddedVocab()));
    for (std::size_t first = 0; first < stage.devices.size(); first += static_cast<std::size_t>(tp)) {
      for (std::size_t i = first + 1; i < first + static_cast<std::size_t>(tp); ++i) {
        const DeviceId a = stage.devices[first], b = stage.devices[i];
        if (!plan_.cluster.contains(a) || !plan_.cluster.contains(b)) continue;
        if (a.node != b.node)
          add(where, fmt::format("a tp group spans nodes: {} and {}", plan_.cluster.nameOf(a), plan_.cluster.nameOf(b)));
        else if (plan_.cluster.typeIndexOf(a) != plan_.cluster.typeIndexOf(b)) {
          add(where,
              fmt::format("a tp group mixes types: {} and {}", plan_.cluster.typeOf(a).name, plan_.cluster.typeOf(b).name));
        }
      }
    }
  }

  void checkShares(const Pipeline& pipeline, const Stage& stage, const std::string& where) {
    if (stage.shares.empty()) return;
    if (stage.shares.size() != static_cast<std::size_t>(stage.dp)) {
      add(where, fmt::format("has {} shares for dp {}", stage.shares.size(), stage.dp));
      return;
    }
    const std::int64_t sum = std::accumulate(stage.shares.begin(), stage.shares.end(), std::int64_t{0});
    if (sum != pipeline.microBatch) {
      add(where, fmt::format("shares sum to {} of {} samples of a micro-batch", sum, pipeline.microBatch));
    }
  }

  void checkSamples() {
    std::int64_t sum = 0;
    for (const Pipeline& pipeline : plan_.pipelines) sum += pipeline.localBatch;
    if (sum != plan_.training.globalBatch) {
      add("plan", fmt::format("trains {} of {} samples", sum, plan_.training.globalBatch),
          "local batches must sum to the global batch");
    }
  }

  const Plan& plan_;
  std::unordered_map<DeviceId, std::string> firstUse_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> shapeViolations(const Plan& plan) { return ShapeCheck(plan).run(); }

std::string placeOf(std::size_t pipeline, std::size_t stage) { return fmt::format("pipeline {}, stage {}", pipeline, stage); }

}  // namespace evenkeel
