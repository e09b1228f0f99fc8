// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/outline_model.h"

#include <algorithm>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/device_edits.h"

namespace evenkeel::gui {
namespace {

constexpr quintptr kGroupId = ~quintptr{0};  // rows of groups; the id of an item's row is its group

}  // namespace

OutlineModel::OutlineModel(ProjectDocument& document, QObject* parent) : QAbstractItemModel(parent), document_(document) {
  rows_ = rowsOf(document_.project().cluster);
  connect(&document_, &ProjectDocument::changed, this, &OutlineModel::refresh);
}

std::array<OutlineModel::Rows, OutlineModel::GroupCount> OutlineModel::rowsOf(const Cluster& cluster) const {
  std::array<Rows, GroupCount> rows;
  for (const Node& node : cluster.nodes)
    rows[Machines].push_back(
        {node.name, text(node.name), text(devicesText(cluster, node)).replace(QStringLiteral(" x "), QStringLiteral(" × "))});
  for (const Link& link : cluster.links) {
    const QString a = text(cluster.nodes[static_cast<std::size_t>(link.first)].name),
                  b = text(cluster.nodes[static_cast<std::size_t>(link.second)].name);
    rows[Connections].push_back(
        {linkKey(cluster, link), QStringLiteral("%1 – %2").arg(a, b), tr("%1 GB/s").arg(numberText(gbs(link.spec.bandwidth)))});
  }
  for (const Switch& s : cluster.switches) {
    rows[Switches].push_back({s.name, text(s.name), tr("%1 GB/s a port").arg(numberText(gbs(s.bandwidth)))});
    for (const std::string& member : s.members)
      rows[Connections].push_back(
          {connectionKey(s.name, member), QStringLiteral("%1 – %2").arg(text(s.name), text(member)), tr("port")});
  }
  return rows;
}

void OutlineModel::refresh(Parts parts) {
  if (!parts.testFlag(Part::Cluster)) return;
  auto rows = rowsOf(document_.project().cluster);
  isRefreshing_ = true;
  for (int group = 0; group < GroupCount; ++group) replace(group, std::move(rows[static_cast<std::size_t>(group)]));
  isRefreshing_ = false;
}

void OutlineModel::replace(int group, Rows rows) {
  Rows& old = rows_[static_cast<std::size_t>(group)];
  if (old == rows) return;
  const QModelIndex parent = index(group, 0);
  const auto sameItem = [](const Row& a, const Row& b) { return a.item == b.item; };
  const std::size_t most = std::min(old.size(), rows.size());
  std::size_t head = 0, tail = 0;
  while (head < most && sameItem(old[head], rows[head])) ++head;
  while (tail < most - head && sameItem(old[old.size() - 1 - tail], rows[rows.size() - 1 - tail])) ++tail;
  head = most - tail;  // what differs on both sides changes in place
  const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  if (head + tail < old.size()) {
    beginRemoveRows(parent, static_cast<int>(head), static_cast<int>(old.size() - tail) - 1);
    old.erase(old.begin() + at(head), old.end() - at(tail));
    endRemoveRows();
  }
  if (head + tail < rows.size()) {
    beginInsertRows(parent, static_cast<int>(head), static_cast<int>(rows.size() - tail) - 1);
    old.insert(old.begin() + at(head), rows.begin() + at(head), rows.end() - at(tail));
    endInsertRows();
  }
  old = std::move(rows);
  emit dataChanged(parent, index(group, What));
  if (!old.empty()) emit dataChanged(index(0, Name, parent), index(static_cast<int>(old.size()) - 1, What, parent));
}

std::string OutlineModel::itemAt(const QModelIndex& index) const {
  if (!index.isValid() || index.internalId() == kGroupId) return {};
  return rows_[index.internalId()][static_cast<std::size_t>(index.row())].item;
}

QModelIndex OutlineModel::indexOf(const std::string& item) const {
  for (int group = 0; group < GroupCount; ++group) {
    const Rows& rows = rows_[static_cast<std::size_t>(group)];
    const auto found = std::ranges::find(rows, item, &Row::item);
    if (found != rows.end()) return index(static_cast<int>(found - rows.begin()), Name, index(group, 0));
  }
  return {};
}

QModelIndex OutlineModel::index(int row, int column, const QModelIndex& parent) const {
  if (row < 0 || column < 0 || column >= ColumnCount || row >= rowCount(parent)) return {};
  return parent.isValid() ? createIndex(row, column, static_cast<quintptr>(parent.row())) : createIndex(row, column, kGroupId);
}

QModelIndex OutlineModel::parent(const QModelIndex& child) const {
  if (!child.isValid() || child.internalId() == kGroupId) return {};
  return createIndex(static_cast<int>(child.internalId()), 0, kGroupId);
}

int OutlineModel::rowCount(const QModelIndex& parent) const {
  if (!parent.isValid()) return GroupCount;
  if (parent.internalId() != kGroupId || parent.column() != 0) return 0;
  return static_cast<int>(rows_[static_cast<std::size_t>(parent.row())].size());
}

int OutlineModel::columnCount(const QModelIndex&) const { return ColumnCount; }

QVariant OutlineModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (index.internalId() == kGroupId) {
    if (role != Qt::DisplayRole) return {};
    if (index.column() == What) return QString::number(rows_[static_cast<std::size_t>(index.row())].size());
    return index.row() == Machines ? tr("Machines") : index.row() == Switches ? tr("Switches") : tr("Connections");
  }
  const Row& row = rows_[index.internalId()][static_cast<std::size_t>(index.row())];
  if (role == Qt::AccessibleTextRole) return QStringLiteral("%1, %2").arg(row.name, row.what);
  if (role == Qt::ToolTipRole) return QStringLiteral("%1: %2").arg(row.name, row.what);
  if (role != Qt::DisplayRole && role != Qt::EditRole) return {};
  return index.column() == Name ? row.name : row.what;
}

QVariant OutlineModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == Name ? tr("Name") : tr("What");
}

Qt::ItemFlags OutlineModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  if (index.internalId() == kGroupId) return Qt::ItemIsEnabled;
  const bool canRename = index.column() == Name && index.internalId() != Connections;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren | (canRename ? Qt::ItemIsEditable : Qt::NoItemFlags);
}

bool OutlineModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  const std::string from = itemAt(index), to = value.toString().trimmed().toStdString();
  std::optional<Error> error;
  document_.edit(tr("Rename %1").arg(text(from)), [&](Project& project) {
    if (auto renamed = rename(project, from, to); !renamed) error = renamed.error();
  });
  if (error) emit refused(*error);
  else emit renamed(to);
  return !error;
}

}  // namespace evenkeel::gui
