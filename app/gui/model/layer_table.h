// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/plan/problem.h"

namespace evenkeel::gui {

/// What one kind of unit of a model is made of, for one sample; no widget enters.
struct UnitRow {
  UnitKind kind = UnitKind::Embedding;
  std::string name;  // of a layer of a table
  int count = 0;
  std::int64_t parameters = 0;  // of one, padded vocabulary
  double flops = 0;             // forward and backward of one
  Bytes saved;                  // activations of one, kept from forward to backward
  bool operator==(const UnitRow&) const = default;
};
[[nodiscard]] std::vector<UnitRow> unitRows(const Model& model, const Training& training);

/// The layer table: a row a kind of unit, then their sum.
class LayerTable final : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Kind, Count, Parameters, Flops, Saved, ColumnCount };
  using QAbstractTableModel::QAbstractTableModel;
  void setRows(std::vector<UnitRow> rows);

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<UnitRow> rows_;  // the last one is the sum, if there is any
};

}  // namespace evenkeel::gui
