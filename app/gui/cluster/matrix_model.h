// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QHash>

#include "app/gui/document/project_document.h"

namespace evenkeel::gui {

/// What one flow gets between each two machines, in GB/s, as a heat map; inside a machine on the diagonal. Writing a number
/// between two machines draws a link with it, erasing it takes the drawn link away again; each is an undo step of the document.
/// A cell is computed when it is shown: O(connections), with switches O(nodes * switches).
class MatrixModel final : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit MatrixModel(ProjectDocument& document, QObject* parent = nullptr);

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 private:
  void refresh(Parts parts);
  void findRange();
  [[nodiscard]] double bandwidth(int row, int column) const;  // GB/s
  [[nodiscard]] QString wayOf(int row, int column) const;
  [[nodiscard]] const Link* drawnLink(int row, int column) const;
  [[nodiscard]] const Cluster& cluster() const { return document_.project().cluster; }

  ProjectDocument& document_;
  int count_ = 0;
  double slowest_ = 1, fastest_ = 1;  // GB/s that the colours span
  mutable QHash<quint64, double> known_;
};

}  // namespace evenkeel::gui
