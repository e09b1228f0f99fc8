// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/preflight_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

enum Column { Node, Check, Finding, WayOut, ColumnCount };
constexpr int kMostRowsShown = 8;  // more scroll

}  // namespace

QString copyText(const SessionState& state) {
  QString first;
  int others = 0;
  for (const auto& [node, copy] : state.copies) {
    if (copy.done >= copy.total) continue;
    const auto size = [](std::uint64_t bytes) { return bytesText(Bytes{static_cast<std::int64_t>(bytes)}); };
    if (first.isEmpty())
      first = PreflightView::tr("copying to %1: %2 of %3").arg(QString::fromStdString(node), size(copy.done), size(copy.total));
    else ++others;
  }
  return others == 0 ? first : PreflightView::tr("%1, and to %2 more").arg(first).arg(others);
}

double copyFraction(const SessionState& state) {
  double done = 0, total = 0;
  for (const auto& [node, copy] : state.copies) {
    done += static_cast<double>(copy.done);
    total += static_cast<double>(copy.total);
  }
  return total > 0 && done < total ? done / total : -1;
}

PreflightView::PreflightView(QWidget* parent)
    : QWidget(parent), fold_(new QToolButton), headline_(new QLabel), list_(new QTreeWidget) {
  fold_->setObjectName(QStringLiteral("preflightFold"));
  fold_->setAutoRaise(true);
  fold_->setAccessibleName(tr("Show or hide the preflight rows"));
  fold_->setToolTip(fold_->accessibleName());
  headline_->setObjectName(QStringLiteral("preflightHeadline"));
  list_->setObjectName(QStringLiteral("preflightRows"));
  list_->setAccessibleName(tr("Preflight"));
  list_->setHeaderLabels({tr("Node"), tr("Check"), tr("Finding"), tr("Way out")});
  list_->setRootIsDecorated(false);
  list_->setAlternatingRowColors(true);
  list_->setWordWrap(true);
  list_->setSelectionMode(QAbstractItemView::ContiguousSelection);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  auto* line = new QHBoxLayout;
  line->setSpacing(4);
  line->addWidget(fold_);
  line->addWidget(headline_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addLayout(line);
  layout->addWidget(list_);
  connect(fold_, &QToolButton::clicked, this, [this] {
    isChosen_ = true;
    setFolded(!isFolded());
  });
  setFolded(true);
}

bool PreflightView::isFolded() const { return list_->isHidden(); }

void PreflightView::setFolded(bool isFolded) {
  list_->setVisible(!isFolded);
  fold_->setArrowType(isFolded ? Qt::RightArrow : Qt::DownArrow);
}

QString PreflightView::headline(const SessionState& state, std::size_t objections) const {
  if (const QString copying = copyText(state); !copying.isEmpty()) return tr("Preflight · %1").arg(copying);
  const bool isRunning = state.phase == SessionPhase::Checking || (state.phase == SessionPhase::Starting && state.copies.empty());
  if (objections > 0) return tr("✕ Preflight: %1 of %2 checks object").arg(objections).arg(state.rows.size());
  return isRunning ? tr("Preflight: %1 checks passed so far").arg(state.rows.size())
                   : tr("✓ Preflight: all %1 checks passed").arg(state.rows.size());
}

void PreflightView::show(const SessionState& state) {
  setVisible(!state.rows.empty());
  if (state.rows.empty()) isChosen_ = false;
  const auto objections =
      static_cast<std::size_t>(std::ranges::count_if(state.rows, [](const PreflightRow& row) { return !row.passed; }));
  const Colours& c = colours(palette());
  QPalette tint;
  tint.setColor(QPalette::WindowText, objections > 0                          ? c.error
                                      : state.phase == SessionPhase::Starting ? palette().color(QPalette::WindowText)
                                                                              : c.good);
  headline_->setPalette(tint);
  headline_->setText(headline(state, objections));
  if (rows_ != state.rows) fill(state.rows);
  if (!isChosen_) setFolded(objections == 0);
}

void PreflightView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) fill(std::exchange(rows_, {}));
}

void PreflightView::fill(const std::vector<PreflightRow>& rows) {
  rows_ = rows;
  list_->clear();
  auto ordered = rows;
  std::ranges::stable_partition(ordered, [](const PreflightRow& row) { return !row.passed; });  // objections on top
  const Colours& c = colours(palette());
  for (const PreflightRow& row : ordered) {
    auto* item = new QTreeWidgetItem(list_);
    item->setText(Node, row.node.empty() ? tr("job") : QString::fromStdString(row.node));
    item->setText(Check, (row.passed ? QStringLiteral("✓ ") : QStringLiteral("✕ ")) + QString::fromStdString(row.check));
    item->setForeground(Check, row.passed ? c.good : c.error);
    item->setText(Finding, QString::fromStdString(row.detail));
    item->setText(WayOut, row.passed ? QString() : QString::fromStdString(row.remedy));
    for (int column = 0; column < ColumnCount; ++column) item->setToolTip(column, item->text(column));
  }
  list_->header()->setStretchLastSection(true);
  list_->resizeColumnToContents(Node);
  list_->resizeColumnToContents(Check);
  const bool objects = !ordered.empty() && !ordered.front().passed;
  list_->setColumnHidden(WayOut, !objects);
  list_->setColumnWidth(Finding, std::max(300, (width() - list_->columnWidth(Node) - list_->columnWidth(Check)) / 2));
  int height = list_->header()->sizeHint().height() + 2 * list_->frameWidth();
  for (int i = 0; i < std::min(list_->topLevelItemCount(), kMostRowsShown); ++i)
    height += std::max(20, list_->visualItemRect(list_->topLevelItem(i)).height());
  list_->setFixedHeight(height);
}

}  // namespace evenkeel::gui
