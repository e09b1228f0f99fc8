// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/matrix_model.h"

#include <QApplication>
#include <QFont>
#include <algorithm>
#include <cmath>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/cluster/cluster_text.h"
#include "app/gui/theme/theme.h"
#include "core/base/words.h"

namespace evenkeel::gui {
namespace {

constexpr double kLeastGbs = 1e-9, kMostGbs = 1e9;  // what a cluster file can hold
constexpr int kFaintest = 18, kStrongest = 120;     // alpha of the colour behind a number that must stay readable

}  // namespace

MatrixModel::MatrixModel(ProjectDocument& document, QObject* parent) : QAbstractTableModel(parent), document_(document) {
  count_ = static_cast<int>(cluster().nodes.size());
  findRange();
  connect(&document_, &ProjectDocument::changed, this, &MatrixModel::refresh);
}

void MatrixModel::refresh(Parts parts) {
  if (!parts.testFlag(Part::Cluster)) return;
  const int count = static_cast<int>(cluster().nodes.size());
  known_.clear();
  findRange();
  if (count != count_) {
    beginResetModel();
    count_ = count;
    endResetModel();
  } else if (count > 0) {
    emit dataChanged(index(0, 0), index(count - 1, count - 1));
    emit headerDataChanged(Qt::Horizontal, 0, count - 1);
    emit headerDataChanged(Qt::Vertical, 0, count - 1);
  }
}

void MatrixModel::findRange() {
  slowest_ = kMostGbs;
  fastest_ = kLeastGbs;
  const auto see = [this](BytesPerSecond rate) {
    slowest_ = std::min(slowest_, gbs(rate));
    fastest_ = std::max(fastest_, gbs(rate));
  };
  for (const Node& node : cluster().nodes) {
    see(node.intra.bandwidth);
    see(node.nic.bandwidth);
  }
  for (const Link& link : cluster().links) see(link.spec.bandwidth);
  for (const Switch& s : cluster().switches) see(s.bandwidth);
}

int MatrixModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : count_; }
int MatrixModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : count_; }

double MatrixModel::bandwidth(int row, int column) const {
  if (row == column) return gbs(cluster().nodes[static_cast<std::size_t>(row)].intra.bandwidth);
  const quint64 key = static_cast<quint64>(row) << 32 | static_cast<quint64>(column);
  const auto found = known_.constFind(key);
  if (found != known_.constEnd()) return *found;
  return *known_.insert(key, gbs(cluster().linkBetween({row, 0}, {column, 0}).bandwidth));
}

const Link* MatrixModel::drawnLink(int row, int column) const {
  const auto found = std::ranges::find_if(
      cluster().links, [&](const Link& l) { return std::minmax(l.first, l.second) == std::minmax(row, column); });
  return found == cluster().links.end() ? nullptr : &*found;
}

QString MatrixModel::wayOf(int row, int column) const {
  const QString a = text(cluster().nodes[static_cast<std::size_t>(row)].name),
                b = text(cluster().nodes[static_cast<std::size_t>(column)].name);
  if (row == column) return tr("Between two devices inside %1").arg(a);
  if (drawnLink(row, column) != nullptr) return tr("%1 to %2: the drawn link. Erase the number to take it away.").arg(a, b);
  return tr("%1 to %2: through switches or NICs. Write a number to draw a link.").arg(a, b);
}

QVariant MatrixModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= count_ || index.column() >= count_) return {};
  const int row = index.row(), column = index.column();
  switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole: return numberText(bandwidth(row, column));
    case Qt::ToolTipRole: return wayOf(row, column);
    case Qt::AccessibleTextRole: return tr("%1, %2 GB/s").arg(wayOf(row, column), numberText(bandwidth(row, column)));
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::FontRole: {
      QFont font = QApplication::font();
      font.setBold(row != column && drawnLink(row, column) != nullptr);
      return font;
    }
    case Qt::BackgroundRole: {
      const double span = std::log(std::max(fastest_ / slowest_, 1.0001));
      const double share = std::clamp(std::log(bandwidth(row, column) / slowest_) / span, 0.0, 1.0);
      QColor colour = colours(QApplication::palette()).accent;
      colour.setAlpha(kFaintest + static_cast<int>(share * (kStrongest - kFaintest)));
      return colour;
    }
    default: return {};
  }
}

QVariant MatrixModel::headerData(int section, Qt::Orientation, int role) const {
  if (section < 0 || section >= count_ || (role != Qt::DisplayRole && role != Qt::ToolTipRole)) return {};
  return text(cluster().nodes[static_cast<std::size_t>(section)].name);
}

Qt::ItemFlags MatrixModel::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable | Qt::ItemNeverHasChildren
                         : Qt::NoItemFlags;
}

bool MatrixModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::EditRole) return false;
  const QString written = value.toString().trimmed();
  if (written == data(index, Qt::EditRole).toString()) return false;
  const int row = index.row(), column = index.column();
  const std::string a = cluster().nodes[static_cast<std::size_t>(row)].name,
                    b = cluster().nodes[static_cast<std::size_t>(column)].name;
  if (written.isEmpty()) {
    const Link* link = row == column ? nullptr : drawnLink(row, column);
    if (link == nullptr) return false;
    document_.edit(tr("Remove a link"), [key = linkKey(cluster(), *link)](Project& project) { removeItems(project, {key}); });
    return true;
  }
  const auto number = parseNumber<double>(written.toStdString());
  if (!number || *number < kLeastGbs || *number > kMostGbs) return false;
  LinkSpec spec =
      row == column ? cluster().nodes[static_cast<std::size_t>(row)].intra : cluster().linkBetween({row, 0}, {column, 0});
  setBandwidth(spec, fromGbs(*number));
  document_.edit(tr("Set a bandwidth"), [&](Project& project) {
    if (row == column) changeMachines(project, {a}, [&](Node& node) { node.intra = spec; });
    else setLink(project, a, b, spec);
  });
  return true;
}

}  // namespace evenkeel::gui
