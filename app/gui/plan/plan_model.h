// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractItemModel>

#include "app/gui/plan/plan_facts.h"

namespace evenkeel::gui {

/// The plan table in the style of Table 3 of the paper: a row a pipeline (or several equal ones), below it a row a stage.
/// Values of a pipeline stand in its own row only. Numbers are aligned at the right.
class PlanModel final : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Column { Place, Devices, Layers, Dp, Tp, MicroBatch, Samples, Time, Memory, Recomputed, ColumnCount };
  static constexpr int kStageRole = Qt::UserRole + 1;  // const StageFacts*, of stage rows

  using QAbstractItemModel::QAbstractItemModel;
  /// Where the rows stay the same, only their values change: selection, folding and scroll position stay.
  void setFacts(PlanFacts facts);
  [[nodiscard]] const PlanFacts& facts() const { return facts_; }

  [[nodiscard]] const PipelineFacts* pipelineAt(const QModelIndex& index) const;  // also of its stages
  [[nodiscard]] const StageFacts* stageAt(const QModelIndex& index) const;        // null for pipeline rows
  /// The row of a stage; of an equal pipeline: that of the first.
  [[nodiscard]] QModelIndex indexOf(int pipeline, int stage) const;
  /// Tab-separated text of the given rows with the headings, all rows when `rows` is empty: for spread sheets.
  [[nodiscard]] QString tsv(const QModelIndexList& rows = {}) const;

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  [[nodiscard]] QVariant pipelineData(const PipelineFacts& pipeline, int column, int role) const;
  [[nodiscard]] QVariant stageData(const StageFacts& stage, int column, int role) const;
  PlanFacts facts_;
};

}  // namespace evenkeel::gui

Q_DECLARE_METATYPE(const evenkeel::gui::StageFacts*)
