// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_view.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QTabBar>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <cassert>

#include "app/gui/plan/plan_delegate.h"
#include "app/gui/plan/stage_cards.h"
#include "app/gui/theme/theme.h"
#include "app/gui/timeline/timeline_legend.h"
#include "app/gui/timeline/timeline_view.h"
#include "app/gui/widgets/empty_state.h"
#include "app/gui/widgets/quantity_text.h"
#include "app/gui/widgets/stack.h"

namespace evenkeel::gui {
namespace {

enum Tab { Table, Cards, TimelineTab };

QString violationsText(const std::vector<Violation>& violations) {
  QStringList lines;
  for (const Violation& violation : violations) {
    const QString line = QString::fromStdString(violation.where + ": " + violation.what);
    lines << (violation.remedy.empty() ? line : line + QStringLiteral("; ") + QString::fromStdString(violation.remedy));
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace

QString headlineText(const Evaluation& evaluation, const PlanFacts& facts) {
  const PlanPrediction& predicted = *evaluation.plan.predicted;
  QString text = PlanView::tr("%1 an iteration").arg(QStringLiteral("<b>%1</b>").arg(timeText(predicted.iteration)));
  if (predicted.error > 0) text += PlanView::tr(" ± %1").arg(percentText(predicted.error));
  const auto add = [&](const QString& part) { text += QStringLiteral("&nbsp; · &nbsp;") + part; };
  add(PlanView::tr("%1 samples/s").arg(QString::number(predicted.samplesPerSecond, 'g', 4)));
  add(PlanView::tr("MFU %1").arg(percentText(predicted.mfu)));
  add(PlanView::tr("bubble %1").arg(percentText(evaluation.bubbleFraction)));
  add(PlanView::tr("worst memory %1").arg(percentText(facts.worstMemory)));
  if (predicted.lowerBound.value > 0) add(PlanView::tr("gap %1").arg(percentText(predicted.gap())));
  return text;
}

PlanView::PlanView(QWidget* parent)
    : QWidget(parent),
      stack_(new Stack),
      reason_(new QWidget),
      content_(new QWidget),
      headline_(new QLabel),
      violations_(new QLabel),
      tabs_(new QTabBar),
      tabStack_(new Stack),
      table_(new QTreeView),
      notes_(new QLabel),
      cards_(new StageCards(StageCards::Detail::Full)),
      timeline_(new TimelineView) {
  setObjectName(QStringLiteral("planView"));
  headline_->setObjectName(QStringLiteral("planHeadline"));
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  headline_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  QFont font = headline_->font();
  font.setPointSizeF(font.pointSizeF() * 1.15);
  headline_->setFont(font);
  violations_->setObjectName(QStringLiteral("planViolations"));
  violations_->setWordWrap(true);
  violations_->hide();
  tabs_->setObjectName(QStringLiteral("planTabs"));
  tabs_->setAccessibleName(tr("How the plan is shown"));
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  for (const QString& text : {tr("Table"), tr("Cards"), tr("Timeline")}) tabs_->addTab(text);
  auto* cardsArea = new QScrollArea;
  cardsArea->setWidget(cards_);
  cardsArea->setWidgetResizable(true);
  tabStack_->addWidget(makeTable());
  tabStack_->addWidget(cardsArea);
  tabStack_->addWidget(makeTimeline());

  auto* top = new QHBoxLayout;
  top->addWidget(headline_, 1);
  top->addWidget(tabs_, 0, Qt::AlignBottom);
  auto* layout = new QVBoxLayout(content_);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(top);
  layout->addWidget(violations_);
  layout->addWidget(tabStack_, 1);
  stack_->addWidget(reason_);
  stack_->addWidget(content_);
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(stack_);

  connect(tabs_, &QTabBar::currentChanged, this, &PlanView::showTab);
  connect(cards_, &StageCards::stageClicked, this, &PlanView::select);
  connect(timeline_, &TimelineView::stageClicked, this, [this](int, int pipeline, int stage) { select(pipeline, stage); });
}

QWidget* PlanView::makeTable() {
  table_->setObjectName(QStringLiteral("planTable"));
  table_->setAccessibleName(tr("Plan"));
  table_->setModel(&model_);
  table_->setItemDelegate(new PlanDelegate(table_));
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setAllColumnsShowFocus(true);
  table_->header()->setStretchLastSection(true);
  table_->header()->setResizeContentsPrecision(0);  // of what is seen: a plan may have a thousand rows
  table_->header()->setSectionsMovable(false);
  auto* copyAction = new QAction(tr("Copy rows"), table_);
  copyAction->setObjectName(QStringLiteral("planCopy"));
  copyAction->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_C));
  copyAction->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  connect(copyAction, &QAction::triggered, this, &PlanView::copy);
  table_->addAction(copyAction);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
    const StageFacts* stage = model_.stageAt(current);
    if (!isSelecting_ && stage != nullptr) select(stage->pipeline, stage->stage);
  });
  notes_->setObjectName(QStringLiteral("planNotes"));
  notes_->setWordWrap(true);
  notes_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(table_, 1);
  layout->addWidget(notes_);
  return page;
}

QWidget* PlanView::makeTimeline() {
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(timeline_, 1);
  layout->addWidget(new TimelineLegend);
  return page;
}

void PlanView::showReason(const QString& title, const QString& text, Actions actions) {
  background_.forget();
  wanted_ = nullptr;
  plan_ = nullptr;
  isDrawn_ = true;  // a picture that waits to be looked at is of a plan that is gone
  const bool isShown =
      reason_->accessibleName() == title && reason_->accessibleDescription() == text && stack_->currentWidget() == reason_;
  if (isShown) return;
  stack_->removeWidget(reason_);
  reason_->setObjectName(QString());  // lives on until the event loop runs
  reason_->deleteLater();
  reason_ = new EmptyState(title, text, std::move(actions));
  reason_->setObjectName(QStringLiteral("planReason"));
  reason_->setAccessibleName(title);
  reason_->setAccessibleDescription(text);
  stack_->addWidget(reason_);
  stack_->setCurrentWidget(reason_);
}

void PlanView::setPlan(std::shared_ptr<const Plan> plan) {
  if (wanted_ && (plan == wanted_ || *plan == *wanted_)) return;
  wanted_ = std::move(plan);
  workOut();
}

void PlanView::workOut() {
  assert(wanted_);
  background_.run([plan = wanted_, withSlices = tabs_->currentIndex() == TimelineTab] { return pictureOf(plan, withSlices); },
                  [this](PlanPicture picture) { take(std::move(picture)); });
}

void PlanView::take(PlanPicture picture) {
  picture_ = std::move(picture);
  isDrawn_ = false;
  if (isVisible()) draw();  // else when somebody looks
}

void PlanView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!isDrawn_) draw();
}

void PlanView::draw() {
  isDrawn_ = true;
  const Evaluation& evaluation = picture_.evaluation;
  if (!evaluation.plan.predicted) {
    showReason(tr("This plan is not valid"), violationsText(evaluation.violations));
    wanted_ = picture_.plan;
    return;
  }
  plan_ = picture_.plan;
  headline_->setText(headlineText(evaluation, picture_.facts));
  violations_->setText(tr("This plan does not fit: ") + violationsText(evaluation.violations));
  violations_->setVisible(!evaluation.valid());
  drawnTabs_.clear();
  drawTab();
  stack_->setCurrentWidget(content_);
  emit shown();
}

/// Only what is looked at: a large plan costs milliseconds in each tab.
void PlanView::drawTab() {
  const int tab = tabs_->currentIndex();
  if (!plan_ || drawnTabs_.contains(tab)) return;
  if (tab == TimelineTab) {
    std::vector<TimelineView::Band> bands;
    if (picture_.slices) bands.push_back({QString(), picture_.slices});
    else workOut();
    timeline_->setBands(std::move(bands));
  } else if (tab == Cards) {
    cards_->setFacts(picture_.facts);
  } else {
    const int rowsBefore = model_.rowCount();
    model_.setFacts(picture_.facts);
    if (rowsBefore != model_.rowCount() || table_->selectionModel()->selectedRows().isEmpty()) table_->expandAll();
    fitColumns();
    QStringList notes;
    if (!picture_.facts.bottleneck.isEmpty()) notes << QStringLiteral("◆ ") + picture_.facts.bottleneck;
    notes << (picture_.facts.idle.isEmpty() ? tr("every device is used") : tr("idle: %1").arg(picture_.facts.idle));
    notes_->setText(notes.join(QStringLiteral("    ·    ")) + tr("    ·    cells: filled is computed again, outlined is kept"));
  }
  if (tab != TimelineTab || picture_.slices) drawnTabs_.insert(tab);
}

void PlanView::fitColumns() {
  for (int column = 0; column < PlanModel::Recomputed; ++column) {
    table_->resizeColumnToContents(column);
    table_->setColumnWidth(column, table_->columnWidth(column) + 10);
  }
}

void PlanView::showTab(int tab) {
  tabStack_->setCurrentIndex(tab);
  drawTab();
  emit shown();
}

void PlanView::select(int pipeline, int stage) {
  setSelectedStage(std::pair(pipeline, stage));
  emit stageSelected(pipeline, stage);
}

void PlanView::setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage) {
  isSelecting_ = true;
  if (pipelineAndStage) {
    const QModelIndex row = model_.indexOf(pipelineAndStage->first, pipelineAndStage->second);
    if (row != table_->currentIndex().siblingAtColumn(0)) table_->setCurrentIndex(row);
  } else {
    table_->clearSelection();
    table_->setCurrentIndex({});
  }
  const auto* facts = pipelineAndStage ? picture_.facts.find(pipelineAndStage->first, pipelineAndStage->second) : nullptr;
  cards_->setSelectedStage(facts != nullptr ? std::optional(std::pair(facts->pipeline, facts->stage)) : std::nullopt);
  timeline_->setSelectedStage(pipelineAndStage);
  isSelecting_ = false;
}

void PlanView::copy() {
  QModelIndexList rows = table_->selectionModel()->selectedRows();
  if (rows.size() <= 1) rows.clear();  // one row is where the cursor stands: then the whole table is wanted
  QGuiApplication::clipboard()->setText(model_.tsv(rows));
}

}  // namespace evenkeel::gui
