// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/model/layer_table.h"

#include "app/gui/widgets/quantity_text.h"
#include "core/profile/op_work.h"

namespace evenkeel::gui {

namespace {

std::string nameOfLayer(const OpaqueLayers& layers, UnitKind kind) {
  const auto named = [](const OpaqueLayer& layer, const char* otherwise) { return layer.name.empty() ? otherwise : layer.name; };
  if (kind == UnitKind::Embedding) return named(layers.first, "First layer");
  return kind == UnitKind::Head ? named(layers.last, "Last layer") : named(layers.inner, "Layer");
}

}  // namespace

std::vector<UnitRow> unitRows(const Model& model, const Training& training) {
  std::vector<UnitRow> rows;
  for (const int unit : {0, 1, 2, model.unitCount() - 1}) {
    UnitRow row;
    row.kind = model.unitKind(unit);
    if (model.opaque && row.kind == UnitKind::Mlp) continue;  // a layer is one unit and an empty one
    if (model.opaque) row.name = nameOfLayer(*model.opaque, row.kind);
    row.count = unit == 1 || unit == 2 ? model.layers : 1;
    for (const TensorSpec& tensor : tensorsOf(model, unit)) row.parameters += tensor.elements();
    for (const Op op : opsOf(row.kind)) {
      const OpWork work = opWork(model, training, op, 1, 1);
      row.flops += (work.forward + work.backward).value;
      row.saved += work.saved;
    }
    rows.push_back(row);
  }
  return rows;
}

void LayerTable::setRows(std::vector<UnitRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  if (!rows_.empty()) {
    UnitRow sum;
    for (const UnitRow& row : rows_) {
      sum.count += row.count;
      sum.parameters += row.count * row.parameters;
      sum.flops += row.count * row.flops;
      sum.saved += row.saved * row.count;
    }
    rows_.push_back(sum);
  }
  endResetModel();
}

int LayerTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int LayerTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant LayerTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const bool isSum = index.row() + 1 == rowCount();
  const UnitRow& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((index.column() == Kind ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && index.column() == Saved)
    return tr("Activations of one sample that are kept from forward to backward (Korthikanti et al. 2022)");
  if (role != Qt::DisplayRole) return {};
  static const char* const kNames[] = {QT_TR_NOOP("Embedding"), QT_TR_NOOP("Attention block"), QT_TR_NOOP("MLP block"),
                                       QT_TR_NOOP("Head")};
  switch (index.column()) {
    case Kind:
      if (!isSum && !row.name.empty()) return QString::fromStdString(row.name);
      return isSum ? tr("Whole model") : tr(kNames[static_cast<int>(row.kind)]);
    case Count: return isSum ? QString() : QString::number(row.count);
    case Parameters: return countText(static_cast<double>(row.parameters));
    case Flops: return countText(row.flops);
    case Saved: return bytesText(row.saved);
    default: return {};
  }
}

QVariant LayerTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case Kind: return tr("Unit");
    case Count: return tr("Count");
    case Parameters: return tr("Parameters each");
    case Flops: return tr("FLOPs a sample");
    case Saved: return tr("Activations a sample");
    default: return {};
  }
}

}  // namespace evenkeel::gui
