// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/outline_view.h"

#include <QHeaderView>
#include <QKeyEvent>

#include "app/gui/cluster/cluster_edits.h"

namespace evenkeel::gui {
namespace {

constexpr int kNameWidth = 124;

}  // namespace

OutlineView::OutlineView(Workspace& workspace, QWidget* parent)
    : QTreeView(parent), workspace_(workspace), model_(workspace.document) {
  setObjectName(QStringLiteral("outline"));
  setAccessibleName(tr("Outline of the cluster"));
  setModel(&model_);
  setSelectionMode(ExtendedSelection);
  setSelectionBehavior(SelectRows);
  setEditTriggers(EditKeyPressed | DoubleClicked);
  setUniformRowHeights(true);
  setIndentation(12);
  setHeaderHidden(true);
  setTextElideMode(Qt::ElideMiddle);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  header()->setStretchLastSection(true);
  header()->resizeSection(OutlineModel::Name, kNameWidth);
  expandAll();
  connect(selectionModel(), &QItemSelectionModel::selectionChanged, this, &OutlineView::shareSelection);
  connect(&workspace_.selection, &Selection::changed, this, &OutlineView::takeSelection);
  connect(&model_, &OutlineModel::refused, this, [this](const Error& error) { workspace_.messages.showError(error); });
  connect(&model_, &OutlineModel::renamed, this, [this](const std::string& item) { workspace_.selection.setItems({item}); });
  connect(&workspace_.document, &ProjectDocument::changed, this, &OutlineView::takeSelection);
}

void OutlineView::takeSelection() {
  if (isTaking_) return;
  isTaking_ = true;
  const Items& wanted = workspace_.selection.items();
  QItemSelection selection;
  QModelIndex first;
  for (int group = 0; group < OutlineModel::GroupCount; ++group) {
    const QModelIndex parent = model_.index(group, 0);
    for (int row = 0; row < model_.rowCount(parent); ++row) {
      const QModelIndex index = model_.index(row, 0, parent);
      if (!wanted.contains(model_.itemAt(index))) continue;
      selection.select(index, index);
      if (!first.isValid()) first = index;
    }
  }
  selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  if (first.isValid() && wanted.size() == 1 && !hasFocus()) scrollTo(first);
  isTaking_ = false;
}

void OutlineView::shareSelection() {
  if (isTaking_ || model_.isRefreshing()) return;
  isTaking_ = true;
  Items items;
  for (const QModelIndex& index : selectionModel()->selectedRows()) items.insert(model_.itemAt(index));
  workspace_.selection.setItems(std::move(items));
  isTaking_ = false;
}

void OutlineView::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Delete || state() == EditingState) return QTreeView::keyPressEvent(event);
  const Items items = workspace_.selection.items();
  workspace_.document.edit(tr("Delete"), [&](Project& project) { removeItems(project, items); });
}

}  // namespace evenkeel::gui
