// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_facts.h"

#include <QCoreApplication>
#include <algorithm>
#include <map>

#include "app/gui/widgets/quantity_text.h"
#include "core/plan/violations.h"

namespace evenkeel::gui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("PlanFacts", text); }
QString text(std::string_view view) { return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size())); }

/// Two stages that differ in their devices' places only.
bool looksLike(const Cluster& cluster, const Stage& a, const Stage& b) {
  if (a.units != b.units || a.tp != b.tp || a.dp != b.dp || a.recompute != b.recompute || a.predicted != b.predicted)
    return false;
  return std::ranges::equal(
      a.devices, b.devices, {}, [&](DeviceId d) { return cluster.typeIndexOf(d); },
      [&](DeviceId d) { return cluster.typeIndexOf(d); });
}

bool looksLike(const Cluster& cluster, const Pipeline& a, const Pipeline& b) {
  return a.localBatch == b.localBatch && a.microBatch == b.microBatch &&
         std::ranges::equal(a.stages, b.stages, [&](const Stage& x, const Stage& y) { return looksLike(cluster, x, y); });
}

QString deviceNames(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  QStringList runs;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end].node == devices[i].node && devices[end].index == devices[end - 1].index + 1)
      ++end;
    const QString name = QString::fromStdString(cluster.nameOf(devices[i]));
    runs << (end - i == 1 ? name : tr("%1 to %2").arg(name).arg(devices[end - 1].index));
    i = end;
  }
  return runs.join(QStringLiteral(", "));
}

StageFacts stageFacts(const Plan& plan, int p, int s) {
  const Stage& stage = plan.pipelines[static_cast<std::size_t>(p)].stages[static_cast<std::size_t>(s)];
  StageFacts facts{.pipeline = p,
                   .stage = s,
                   .devices = deviceCounts(plan.cluster, stage.devices),
                   .deviceNames = deviceNames(plan.cluster, stage.devices),
                   .typeIndex = plan.cluster.typeIndexOf(stage.devices.front()),
                   .units = stage.units,
                   .tp = stage.tp,
                   .dp = stage.dp,
                   .predicted = stage.predicted};
  facts.layers = layersIn(plan.model, stage.units);
  for (int unit = stage.units.first; unit < stage.units.last; ++unit) {
    const UnitKind kind = plan.model.unitKind(unit);
    facts.hasEmbedding |= kind == UnitKind::Embedding;
    facts.hasHead |= kind == UnitKind::Head;
    for (const Op op : opsOf(kind)) {
      if (plan.model.opaque && opaqueLayer(plan.model, op) == nullptr) continue;
      OpShare& share = facts.ops[static_cast<std::size_t>(op)];
      ++share.held;
      share.recomputed += std::ranges::any_of(stage.recompute, [&](const Recompute& r) {
        return unit >= r.units.first && unit < r.units.last && std::ranges::find(r.ops, op) != r.ops.end();
      });
    }
  }
  return facts;
}

PipelineFacts pipelineFacts(const Plan& plan, int p, int count) {
  const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
  PipelineFacts facts{.first = p,
                      .count = count,
                      .localBatch = pipeline.localBatch,
                      .microBatches = pipeline.microBatchCount(),
                      .microBatch = pipeline.microBatch,
                      .time = pipeline.predictedTime,
                      .bubbleFraction = pipeline.bubbleFraction};
  for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
    facts.stages.push_back(stageFacts(plan, p, s));
    facts.deviceCount += static_cast<int>(pipeline.stages[static_cast<std::size_t>(s)].devices.size());
  }
  return facts;
}

/// The slowest stage of the slowest pipeline sets the pace.
void markBottleneck(PlanFacts& facts) {
  const auto slowest =
      std::ranges::max_element(facts.pipelines, {}, [](const PipelineFacts& p) { return p.time.value_or(Seconds{}); });
  if (slowest == facts.pipelines.end() || !slowest->time) return;
  const auto pace = [](const StageFacts& s) { return s.predicted ? s.predicted->forward + s.predicted->backward : Seconds{}; };
  StageFacts& stage = *std::ranges::max_element(slowest->stages, {}, pace);
  stage.isBottleneck = true;
  facts.bottleneck =
      tr("%1: %2 compute")
          .arg(QString::fromStdString(placeOf(static_cast<std::size_t>(stage.pipeline), static_cast<std::size_t>(stage.stage))),
               timeText(pace(stage)));
  if (stage.predicted && stage.predicted->send.value > 0)
    facts.bottleneck += tr(", %1 send").arg(timeText(stage.predicted->send));
  facts.bottleneck += tr(" a micro-batch");
}

double used(const MemoryUse& memory) {
  return static_cast<double>(memory.total().value) / static_cast<double>(std::max<std::int64_t>(1, memory.capacity.value));
}

}  // namespace

int StageFacts::recomputedOps() const {
  return static_cast<int>(std::ranges::count_if(ops, [](const OpShare& share) { return share.recomputed > 0; }));
}
int StageFacts::heldOps() const {
  return static_cast<int>(std::ranges::count_if(ops, [](const OpShare& share) { return share.held > 0; }));
}

const StageFacts* PlanFacts::find(int pipeline, int stage) const {
  for (const PipelineFacts& group : pipelines) {
    if (group.contains(pipeline) && stage >= 0 && stage < static_cast<int>(group.stages.size()))
      return &group.stages[static_cast<std::size_t>(stage)];
  }
  return nullptr;
}

PlanFacts planFacts(const Plan& plan) {
  PlanFacts facts;
  const int count = static_cast<int>(plan.pipelines.size());
  for (int p = 0; p < count;) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    int end = p + 1;
    while (end < count && looksLike(plan.cluster, pipeline, plan.pipelines[static_cast<std::size_t>(end)])) ++end;
    facts.pipelines.push_back(pipelineFacts(plan, p, end - p));
    p = end;
  }
  for (const PipelineFacts& pipeline : facts.pipelines) {
    for (const StageFacts& stage : pipeline.stages) {
      if (stage.predicted) facts.worstMemory = std::max(facts.worstMemory, used(stage.predicted->memory));
    }
  }
  facts.idle = deviceCounts(plan.cluster, plan.idleDevices());
  markBottleneck(facts);
  return facts;
}

QString deviceCounts(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::map<int, int> counts;
  for (const DeviceId device : devices) ++counts[cluster.typeIndexOf(device)];
  QStringList parts;
  for (const auto& [type, count] : counts)
    parts << QStringLiteral("%1 × %2").arg(count).arg(
        QString::fromStdString(cluster.deviceTypes[static_cast<std::size_t>(type)].name));
  return parts.join(QStringLiteral(", "));
}

std::set<std::string> machinesOf(const Plan& plan, const PipelineFacts& pipelines, int stage) {
  std::set<std::string> machines;
  for (int p = pipelines.first; p < pipelines.first + pipelines.count; ++p) {
    for (const DeviceId device : plan.pipelines[static_cast<std::size_t>(p)].stages[static_cast<std::size_t>(stage)].devices)
      machines.insert(plan.cluster.nodes[static_cast<std::size_t>(device.node)].name);
  }
  return machines;
}

QString placeText(const PipelineFacts& pipeline) {
  if (pipeline.count == 1) return tr("Pipeline %1").arg(pipeline.first);
  return tr("Pipelines %1 to %2, each").arg(pipeline.first).arg(pipeline.first + pipeline.count - 1);
}

QString layersText(const StageFacts& stage) {
  QStringList parts;
  if (stage.hasEmbedding) parts << tr("embedding");
  if (stage.layers > 0) parts << (stage.layers == 1 ? tr("1 layer") : tr("%1 layers").arg(QString::number(stage.layers, 'g', 5)));
  if (stage.hasHead) parts << tr("head");
  return parts.join(QStringLiteral(", "));
}

Fullness fullness(const MemoryUse& memory) {
  const double part = used(memory);
  return part >= 0.95 ? Fullness::Full : part >= 0.85 ? Fullness::Tight : Fullness::Roomy;
}

QString signOf(Fullness fullness) {
  return fullness == Fullness::Full ? QStringLiteral("!!") : fullness == Fullness::Tight ? QStringLiteral("!") : QString();
}

QString memoryText(const MemoryUse& memory) {
  const QString words = tr("%1 of %2, %3").arg(bytesText(memory.total()), bytesText(memory.capacity), percentText(used(memory)));
  switch (fullness(memory)) {
    case Fullness::Roomy: return words;
    case Fullness::Tight: return words + tr(", nearly full");
    case Fullness::Full: return words + tr(", full");
  }
  return words;
}

QString memoryDetail(const MemoryUse& memory) {
  QStringList lines{memoryText(memory)};
  for (const auto& [name, size] : {std::pair{tr("weights"), memory.weights}, std::pair{tr("gradients"), memory.gradients},
                                   std::pair{tr("optimizer"), memory.optimizer}, std::pair{tr("activations"), memory.activations},
                                   std::pair{tr("transient"), memory.transient}, std::pair{tr("framework"), memory.reserved}})
    lines << QStringLiteral("%1: %2").arg(name, bytesText(size));
  return lines.join(QLatin1Char('\n'));
}

QString recomputeText(const StageFacts& stage) {
  QStringList parts;
  for (int op = 0; op < kOpCount; ++op) {
    const OpShare& share = stage.ops[static_cast<std::size_t>(op)];
    if (share.recomputed == 0) continue;
    const QString word = text(name(static_cast<Op>(op)));
    parts << (share.recomputed == share.held ? word : tr("%1 in %2 of %3").arg(word).arg(share.recomputed).arg(share.held));
  }
  if (parts.isEmpty()) return tr("nothing recomputed");
  return tr("%1 of %2 kinds of op recomputed: %3").arg(parts.size()).arg(stage.heldOps()).arg(parts.join(QStringLiteral(", ")));
}

QString stageText(const StageFacts& stage) {
  QStringList lines;
  lines << QString::fromStdString(placeOf(static_cast<std::size_t>(stage.pipeline), static_cast<std::size_t>(stage.stage))) +
               QStringLiteral(": ") + stage.devices;
  lines << tr("%1 (units %2 to %3), TP %4, DP %5")
               .arg(layersText(stage))
               .arg(stage.units.first)
               .arg(stage.units.last - 1)
               .arg(stage.tp)
               .arg(stage.dp);
  if (stage.predicted) {
    lines << tr("a micro-batch: forward %1, backward %2")
                 .arg(timeText(stage.predicted->forward), timeText(stage.predicted->backward));
    lines << tr("memory %1").arg(memoryText(stage.predicted->memory));
  }
  lines << recomputeText(stage);
  if (stage.isBottleneck) lines << tr("the bottleneck");
  return lines.join(QLatin1Char('\n'));
}

}  // namespace evenkeel::gui
