// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractItemModel>
#include <array>
#include <string>
#include <vector>

#include "app/gui/document/project_document.h"

namespace evenkeel::gui {

/// Machines, switches and connections of the document as a tree: the drawing in words, for keyboards and screen readers.
/// Names of machines and switches can be edited; that is an undo step of the document.
class OutlineModel final : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Group { Machines, Switches, Connections, GroupCount };
  enum Column { Name, What, ColumnCount };

  explicit OutlineModel(ProjectDocument& document, QObject* parent = nullptr);

  /// The item of Selection at this index; empty for a group.
  [[nodiscard]] std::string itemAt(const QModelIndex& index) const;
  /// Its name column; invalid if there is no such item. O(items).
  [[nodiscard]] QModelIndex indexOf(const std::string& item) const;

  /// While it follows the document: rows that vanish from a view's selection then were not deselected by a person.
  [[nodiscard]] bool isRefreshing() const { return isRefreshing_; }

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 signals:
  void refused(const evenkeel::Error& error);
  void renamed(const std::string& item);

 private:
  struct Row {
    std::string item;  // as in Selection
    QString name, what;
    bool operator==(const Row&) const = default;
  };
  using Rows = std::vector<Row>;
  [[nodiscard]] std::array<Rows, GroupCount> rowsOf(const Cluster& cluster) const;
  void refresh(Parts parts);
  /// Removes and inserts as few rows as can be, so that views keep what is open; a new name is no new row.
  void replace(int group, Rows rows);

  ProjectDocument& document_;
  std::array<Rows, GroupCount> rows_;
  bool isRefreshing_ = false;
};

}  // namespace evenkeel::gui
