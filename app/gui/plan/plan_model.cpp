// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_model.h"

#include <QFont>
#include <algorithm>

#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr quintptr kTop = 0;  // internal id of pipeline rows; of a stage row: 1 + the row of its pipeline

bool haveSameRows(const PlanFacts& a, const PlanFacts& b) {
  return std::ranges::equal(
      a.pipelines, b.pipelines, {}, [](const PipelineFacts& p) { return p.stages.size(); },
      [](const PipelineFacts& p) { return p.stages.size(); });
}

bool isNumber(int column) { return column >= PlanModel::Layers && column <= PlanModel::Time; }

}  // namespace

void PlanModel::setFacts(PlanFacts facts) {
  if (!haveSameRows(facts, facts_)) {
    beginResetModel();
    facts_ = std::move(facts);
    endResetModel();
    return;
  }
  facts_ = std::move(facts);
  if (facts_.pipelines.empty()) return;
  emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
  for (int row = 0; row < rowCount(); ++row) {
    const QModelIndex pipeline = index(row, 0);
    emit dataChanged(index(0, 0, pipeline), index(rowCount(pipeline) - 1, ColumnCount - 1, pipeline));
  }
}

const PipelineFacts* PlanModel::pipelineAt(const QModelIndex& index) const {
  if (!index.isValid()) return nullptr;
  const auto row =
      index.internalId() == kTop ? static_cast<std::size_t>(index.row()) : static_cast<std::size_t>(index.internalId() - 1);
  return &facts_.pipelines[row];
}

const StageFacts* PlanModel::stageAt(const QModelIndex& index) const {
  if (!index.isValid() || index.internalId() == kTop) return nullptr;
  return &pipelineAt(index)->stages[static_cast<std::size_t>(index.row())];
}

QModelIndex PlanModel::indexOf(int pipeline, int stage) const {
  for (std::size_t row = 0; row < facts_.pipelines.size(); ++row) {
    if (facts_.pipelines[row].contains(pipeline)) return index(stage, 0, index(static_cast<int>(row), 0));
  }
  return {};
}

QModelIndex PlanModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) + 1 : kTop);
}

QModelIndex PlanModel::parent(const QModelIndex& child) const {
  if (!child.isValid() || child.internalId() == kTop) return {};
  return createIndex(static_cast<int>(child.internalId() - 1), 0, kTop);
}

int PlanModel::rowCount(const QModelIndex& parent) const {
  if (!parent.isValid()) return static_cast<int>(facts_.pipelines.size());
  if (parent.internalId() != kTop || parent.column() != 0) return 0;
  return static_cast<int>(facts_.pipelines[static_cast<std::size_t>(parent.row())].stages.size());
}

int PlanModel::columnCount(const QModelIndex& /*parent*/) const { return ColumnCount; }

QVariant PlanModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  const StageFacts* stage = stageAt(index);
  return stage != nullptr ? stageData(*stage, index.column(), role) : pipelineData(*pipelineAt(index), index.column(), role);
}

QVariant PlanModel::pipelineData(const PipelineFacts& pipeline, int column, int role) const {
  if (role == Qt::FontRole && column == Place) {
    QFont bold;
    bold.setBold(true);
    return bold;
  }
  if (role == Qt::ToolTipRole && column == MicroBatch) {
    const auto last = pipeline.localBatch % pipeline.microBatch;
    const QString text = tr("%1 micro-batches an iteration").arg(pipeline.microBatches);
    return last == 0 ? text : text + tr(", the last of %1").arg(last);
  }
  if (role == Qt::ToolTipRole && column == Time)
    return tr("Its forward and backward passes; %1 of it are bubbles").arg(percentText(pipeline.bubbleFraction));
  if (role != Qt::DisplayRole) return {};
  switch (column) {
    case Place: return placeText(pipeline);
    case Devices: return pipeline.deviceCount == 1 ? tr("1 device") : tr("%1 devices").arg(pipeline.deviceCount);
    case MicroBatch: return QString::number(pipeline.microBatch);
    case Samples: return exactText(pipeline.localBatch);
    case Time: return pipeline.time ? timeText(*pipeline.time) : QString();
    default: return {};
  }
}

QVariant PlanModel::stageData(const StageFacts& stage, int column, int role) const {
  if (role == kStageRole) return QVariant::fromValue(&stage);
  if (role == Qt::ToolTipRole) {
    if (column == Devices) return stage.deviceNames;
    if (column == Memory && stage.predicted) return memoryDetail(stage.predicted->memory);
    return stageText(stage);
  }
  if (role == Qt::AccessibleTextRole) {
    if (column == Place) return tr("Stage %1").arg(stage.stage) + (stage.isBottleneck ? tr(", the bottleneck") : QString());
    if (column == Memory) return stage.predicted ? memoryText(stage.predicted->memory) : QVariant();
    if (column == Recomputed) return recomputeText(stage);
    return data(indexOf(stage.pipeline, stage.stage).siblingAtColumn(column), Qt::DisplayRole);
  }
  if (role != Qt::DisplayRole) return {};
  switch (column) {
    case Place: return tr("Stage %1").arg(stage.stage) + (stage.isBottleneck ? QStringLiteral("  ◆") : QString());
    case Devices: return stage.devices;
    case Layers: return QString::number(stage.layers, 'g', 5);
    case Dp: return QString::number(stage.dp);
    case Tp: return QString::number(stage.tp);
    case Time: return stage.predicted ? timeText(stage.predicted->forward + stage.predicted->backward) : QString();
    case Memory:
      return stage.predicted ? QStringLiteral("%1 / %2").arg(bytesText(stage.predicted->memory.total()),
                                                             bytesText(stage.predicted->memory.capacity))
                             : QString();
    case Recomputed: return QStringLiteral("%1 / %2").arg(stage.recomputedOps()).arg(stage.heldOps());
    default: return {};
  }
}

QVariant PlanModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isNumber(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  struct Heading {
    const char *text, *meaning;
  };
  static const Heading kHeadings[] = {
      {QT_TR_NOOP("Pipeline, stage"),
       QT_TR_NOOP("A pipeline holds the whole model and trains its part of the batch; ◆ is the stage that sets the pace")},
      {QT_TR_NOOP("Devices"), QT_TR_NOOP("Of a stage: TP x DP of them")},
      {QT_TR_NOOP("Layers"), QT_TR_NOOP("Attention and MLP blocks, half a layer each")},
      {QT_TR_NOOP("DP"), QT_TR_NOOP("Replicas inside the stage that share each micro-batch")},
      {QT_TR_NOOP("TP"), QT_TR_NOOP("Devices that share each layer")},
      {QT_TR_NOOP("Micro-batch"), QT_TR_NOOP("Samples that go through the pipeline at once")},
      {QT_TR_NOOP("Samples"), QT_TR_NOOP("Of an iteration")},
      {QT_TR_NOOP("Time"),
       QT_TR_NOOP("Of a stage: forward and backward of one micro-batch; of a pipeline: all of its micro-batches")},
      {QT_TR_NOOP("Memory"), QT_TR_NOOP("Of the stage's fullest device, with what it may use; ! from 85 %, !! from 95 % on")},
      {QT_TR_NOOP("Recomputed ops"),
       QT_TR_NOOP("A cell a kind of op in the order of the forward pass: filled is computed again, outlined is kept")}};
  if (role == Qt::DisplayRole) return tr(kHeadings[section].text);
  if (role == Qt::ToolTipRole) return tr(kHeadings[section].meaning);
  return {};
}

QString PlanModel::tsv(const QModelIndexList& rows) const {
  QStringList lines;
  const auto line = [](auto&& cell) {
    QStringList cells;
    for (int column = 0; column < ColumnCount; ++column)
      cells << cell(column).toString().replace(QChar(0x2009), QLatin1Char(' '));
    return cells.join(QLatin1Char('\t'));
  };
  lines << line([&](int column) { return headerData(column, Qt::Horizontal, Qt::DisplayRole); });
  const auto add = [&](const QModelIndex& row) {
    // In words where the cell is a picture.
    lines << line([&](int column) {
      const QModelIndex cell = row.siblingAtColumn(column);
      return stageAt(row) != nullptr && column == Recomputed ? data(cell, Qt::AccessibleTextRole) : data(cell, Qt::DisplayRole);
    });
  };
  for (int p = 0; p < rowCount(); ++p) {
    const QModelIndex pipeline = index(p, 0);
    const auto isWanted = [&](const QModelIndex& row) { return rows.isEmpty() || rows.contains(row); };
    if (isWanted(pipeline)) add(pipeline);
    for (int s = 0; s < rowCount(pipeline); ++s) {
      if (isWanted(index(s, 0, pipeline))) add(index(s, 0, pipeline));
    }
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

}  // namespace evenkeel::gui
