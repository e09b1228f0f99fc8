// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/compare_page.h"

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTabWidget>
#include <algorithm>

#include "app/gui/compare/compare_column.h"
#include "app/gui/compare/figure_bars.h"
#include "app/gui/compare/memory_bars.h"
#include "app/gui/plan/plan_page.h"
#include "app/gui/plan/search_command.h"
#include "app/gui/plan/search_controls.h"
#include "app/gui/plan/search_panel.h"
#include "app/gui/timeline/timeline_legend.h"
#include "app/gui/timeline/timeline_view.h"
#include "app/gui/widgets/elided_label.h"
#include "app/gui/widgets/empty_state.h"
#include "app/gui/widgets/quantity_text.h"
#include "app/gui/widgets/stack.h"
#include "core/profile/analytic_profile.h"
#include "core/report/compare_html.h"

namespace evenkeel::gui {
namespace {

constexpr int kPollMs = 40;  // 25 times a second
constexpr int kFrameMs = 16;

QWidget* withCaption(const QString& caption, QWidget* widget, QWidget* below = nullptr) {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  auto* label = new QLabel(caption);
  label->setForegroundRole(QPalette::PlaceholderText);
  layout->addWidget(label);
  layout->addWidget(widget, 1);
  if (below != nullptr) layout->addWidget(below);
  return panel;
}

/// The same work on the same kinds of devices, whatever their names and number.
bool looksLike(const PipelineFacts& a, const PipelineFacts& b) {
  return a.microBatch == b.microBatch && std::ranges::equal(a.stages, b.stages, [](const StageFacts& x, const StageFacts& y) {
           return x.devices == y.devices && x.units == y.units && x.tp == y.tp && x.dp == y.dp && x.ops == y.ops;
         });
}

}  // namespace

ComparePage::ComparePage(Workspace& workspace, QString folder, QWidget* parent)
    : Page(workspace, parent),
      folder_(std::move(folder)),
      limit_(new QDoubleSpinBox),
      start_(new QPushButton(tr("Compare"))),
      stop_(new QPushButton(tr("Stop all, keep best"))),
      onlyDifferences_(new QCheckBox(tr("Only differences"))),
      export_(new QPushButton(tr("Export report…"))),
      stale_(new ElidedLabel),
      stack_(new Stack),
      results_(new QSplitter(Qt::Vertical)),
      columnRow_(new QWidget),
      columnLayout_(new QHBoxLayout(columnRow_)),
      timeline_(new TimelineView),
      memory_(new MemoryBars),
      figures_(new FigureBars) {
  setObjectName(QStringLiteral("comparePage"));
  columnLayout_->setContentsMargins(0, 0, 0, 0);
  columnLayout_->setSpacing(10);
  auto* columns = new QScrollArea;
  columns->setWidget(columnRow_);
  columns->setWidgetResizable(true);
  columns->setFrameShape(QFrame::NoFrame);
  results_->setChildrenCollapsible(false);
  results_->addWidget(columns);
  results_->addWidget(makePictures());
  connect(results_, &QSplitter::splitterMoved, this, [this] { isSplitByHand_ = true; });
  auto* empty = new EmptyState(tr("Which planner does best here?"),
                               tr("Each ticked planner searches with all cores and the same limit, one after the other. All "
                                  "plans are predicted by the same cost model."),
                               {{tr("Compare"), [this] { compare(); }}});
  stack_->addWidget(empty);
  stack_->addWidget(results_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(12, 10, 12, 10);
  layout->setSpacing(10);
  layout->addWidget(makeControls());
  layout->addWidget(stale_);
  layout->addWidget(stack_, 1);

  stale_->setObjectName(QStringLiteral("compareStale"));
  stale_->setText(tr("! Compared for the project before your edit: cluster, model or training have changed since."));
  timer_.setInterval(kPollMs);
  connect(&timer_, &QTimer::timeout, this, &ComparePage::poll);
  showTimer_.setSingleShot(true);
  connect(&showTimer_, &QTimer::timeout, this, [this] {
    showResults();
    if (runs_.isRunning()) return;
    refreshControls();
    if (!runs_.best()) timeline_->setPlaceholder(tr("No planner found a plan; the reasons stand above."));
    QTimer::singleShot(0, this, &ComparePage::fitColumns);  // when the columns are laid out
  });
  connect(&runs_, &CompareRuns::changed, this, &ComparePage::followState);
  connect(&runs_, &CompareRuns::finished, this, [this] {
    timer_.stop();
    showTimer_.start(kFrameMs);
  });
  connect(&workspace_.document, &ProjectDocument::changed, this, &ComparePage::refresh);
  refreshControls();
}

QWidget* ComparePage::makeControls() {
  auto* bar = new QWidget;
  auto* rows = new QVBoxLayout(bar);  // what searches; what is shown of it
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(6);
  auto* layout = new QHBoxLayout;
  auto* shown = new QHBoxLayout;
  rows->addLayout(layout);
  rows->addLayout(shown);
  layout->addWidget(new QLabel(tr("Planners")));
  for (const Planner& planner : planners()) {
    auto* box = new QCheckBox(QString::fromStdString(planner.name));
    box->setObjectName(QStringLiteral("compare-") + box->text());
    box->setToolTip(QString::fromStdString(planner.summary));
    box->setChecked(true);
    connect(box, &QCheckBox::toggled, this, &ComparePage::refreshControls);
    layout->addWidget(box);
    choices_.emplace_back(box, &planner);
  }
  layout->addSpacing(10);
  auto* label = new QLabel(tr("Time limit of each"));
  label->setBuddy(limit_);
  layout->addWidget(label);
  limit_->setObjectName(QStringLiteral("compareLimit"));
  setUpTimeLimit(*limit_);
  layout->addWidget(limit_);
  layout->addStretch();
  stop_->setObjectName(QStringLiteral("compareStop"));
  start_->setObjectName(QStringLiteral("compareStart"));
  start_->setToolTip(tr("Run the ticked planners (F5)"));
  start_->setDefault(true);
  onlyDifferences_->setObjectName(QStringLiteral("compareOnlyDifferences"));
  onlyDifferences_->setToolTip(tr("Hide figures and pipelines that all plans have in common"));
  export_->setObjectName(QStringLiteral("compareExport"));
  export_->setToolTip(tr("Write one page with figures, timelines, memory and reasons (Ctrl+E)"));
  widen({export_, stop_, start_});
  shown->addWidget(onlyDifferences_);
  shown->addStretch();
  shown->addWidget(export_);
  layout->addWidget(stop_);
  layout->addWidget(start_);
  connect(start_, &QPushButton::clicked, this, &ComparePage::compare);
  connect(stop_, &QPushButton::clicked, &runs_, &CompareRuns::cancelAll);
  connect(onlyDifferences_, &QCheckBox::toggled, this, &ComparePage::showDifferences);
  connect(export_, &QPushButton::clicked, this, &ComparePage::askForReport);
  addKey(*this, QKeySequence(Qt::CTRL | Qt::Key_E), *export_);
  addKey(*this, QKeySequence(Qt::Key_F5), *start_);
  addKey(*this, QKeySequence(Qt::SHIFT | Qt::Key_F5), *stop_);
  return bar;
}

QWidget* ComparePage::makePictures() {
  timeline_->setObjectName(QStringLiteral("compareTimeline"));
  auto* pictures = new QSplitter(Qt::Horizontal);
  pictures->setChildrenCollapsible(false);
  pictures->addWidget(withCaption(tr("One iteration, all plans on one axis"), timeline_, new TimelineLegend));
  auto* tabs = new QTabWidget;
  tabs->setObjectName(QStringLiteral("compareTabs"));
  tabs->setDocumentMode(true);
  tabs->addTab(figures_, tr("Key figures"));
  tabs->addTab(withCaption(tr("A bar a stage, of what its fullest device may use"), memory_), tr("Peak memory"));
  pictures->addWidget(tabs);
  pictures->setStretchFactor(0, 3);
  pictures->setStretchFactor(1, 2);
  pictures->setSizes({640, 470});
  return pictures;
}

QString ComparePage::missing() const {
  return workspace_.document.project().problem() ? QString() : tr("Draw a cluster and choose a model first");
}

std::vector<const Planner*> ComparePage::ticked() const {
  std::vector<const Planner*> planners;
  for (const auto& [box, planner] : choices_) {
    if (box->isChecked()) planners.push_back(planner);
  }
  return planners;
}

void ComparePage::compare() {
  const auto problem = workspace_.document.project().problem();
  const auto planners = ticked();
  if (!problem || planners.empty() || runs_.isRunning()) return;
  SearchRequest request{planners.front(), *problem, {}, {}};
  if (limit_->value() > 0) request.budget.timeLimit = Seconds{limit_->value()};
  comparedInputs_ = inputsHash(problem->cluster, problem->model, problem->training);
  command_ = compareCommand(planners, request, folder_);
  workspace_.showCommand(command_);
  for (CompareColumn* column : columns_) column->deleteLater();
  columns_.clear();
  for (int i = 0; i < static_cast<int>(planners.size()); ++i) {
    auto* column = new CompareColumn(*planners[static_cast<std::size_t>(i)]);
    connect(column, &CompareColumn::cancelled, this, [this, i] { runs_.cancel(i); });
    connect(column, &CompareColumn::used, this, [this, i] { use(i); });
    columnLayout_->addWidget(column, 1);
    columns_.push_back(column);
  }
  timeline_->setPlaceholder(tr("The timelines of all plans stand here on one axis."));
  stack_->setCurrentIndex(1);
  timer_.start();
  runs_.start(planners, std::move(request));
  showResults();
  QTimer::singleShot(0, this, &ComparePage::fitColumns);  // when the columns are laid out
  refreshControls();
}

void ComparePage::followState(int index) {
  const Contender& contender = runs_.contenders()[static_cast<std::size_t>(index)];
  if (contender.state == Contender::State::Running) {
    job_ = nextSearchJob();
    emit workspace_.jobStarted(job_, tr("Compare: %1").arg(QString::fromStdString(contender.planner->name)),
                               [this, index] { runs_.cancel(index); });
  } else if (contender.state == Contender::State::Done) {
    emit workspace_.jobEnded(job_);
  }
  showTimer_.start(kFrameMs);
}

void ComparePage::showResults() {
  const auto best = runs_.best();
  std::vector<TimelineView::Band> bands;
  std::vector<MemoryBars::Group> groups;
  for (std::size_t i = 0; i < runs_.contenders().size(); ++i) {
    const Contender& contender = runs_.contenders()[i];
    columns_[i]->setContender(contender, best);
    if (!contender.evaluation) continue;
    const QString name = QString::fromStdString(contender.planner->name);
    const bool isFolded = contender.facts.pipelines.size() < contender.evaluation->plan.pipelines.size();
    const QString heading = QStringLiteral("%1, %2").arg(name, timeText(contender.evaluation->plan.predicted->iteration));
    bands.push_back({isFolded ? heading + tr(" (of equal pipelines the first)") : heading, contender.slices});
    groups.push_back({name, contender.facts});
  }
  timeline_->setBands(std::move(bands));
  memory_->setGroups(std::move(groups));
  showFigures();
  showDifferences();
  refreshStale();
}

void ComparePage::showFigures() {
  std::vector<FigureBars::Row> rows;
  for (const Contender& contender : runs_.contenders()) {
    FigureBars::Row row{QString::fromStdString(contender.planner->name), std::vector<std::optional<double>>(5),
                        std::vector<QString>(5)};
    if (contender.evaluation) {
      const report::KeyFigures figures = report::keyFiguresOf(*contender.evaluation);
      row.values = {figures.samplesPerSecond, figures.bubbleFraction, figures.mfu, figures.worstMemory,
                    contender.search.elapsed.value};
      row.texts = {QString::number(figures.samplesPerSecond, 'g', 4), percentText(figures.bubbleFraction),
                   percentText(figures.mfu), percentText(figures.worstMemory), timeText(contender.search.elapsed)};
    } else {
      const bool isOpen = contender.state == Contender::State::Waiting || contender.state == Contender::State::Running;
      row.texts[0] = isOpen ? QStringLiteral("…") : QString::fromStdString(report::stateOf(comparedOf(contender)));
    }
    rows.push_back(std::move(row));
  }
  figures_->setTable(
      {{tr("Samples/s"), true}, {tr("Bubble"), false}, {tr("MFU"), true}, {tr("Memory"), false}, {tr("Search"), false}},
      std::move(rows));
}

void ComparePage::showDifferences() {
  std::vector<std::size_t> planned;
  for (std::size_t i = 0; i < runs_.contenders().size(); ++i) {
    if (runs_.contenders()[i].evaluation) planned.push_back(i);
  }
  const bool hides = onlyDifferences_->isChecked() && planned.size() > 1;
  for (const std::size_t i : planned) {
    const QStringList texts = columns_[i]->figureTexts();
    std::vector<bool> shown(static_cast<std::size_t>(texts.size()), !hides);
    PlanFacts facts = runs_.contenders()[i].facts;
    const std::size_t whole = facts.pipelines.size();
    for (const std::size_t other : planned) {
      const QStringList others = columns_[other]->figureTexts();
      for (qsizetype f = 0; f < texts.size(); ++f)
        shown[static_cast<std::size_t>(f)] = shown[static_cast<std::size_t>(f)] || texts[f] != others[f];
    }
    if (hides) {
      std::erase_if(facts.pipelines, [&](const PipelineFacts& pipeline) {
        return std::ranges::all_of(planned, [&](std::size_t other) {
          return std::ranges::any_of(runs_.contenders()[other].facts.pipelines,
                                     [&](const PipelineFacts& there) { return looksLike(pipeline, there); });
        });
      });
    }
    const std::size_t left = whole - facts.pipelines.size();
    columns_[i]->showOnly(shown, facts,
                          left == 0 ? QString() : tr("%n kind(s) of pipeline as in all plans", nullptr, static_cast<int>(left)));
  }
}

Result<void> ComparePage::exportReport(const QString& file) const {
  const Problem& problem = runs_.problem();
  report::CompareReport report{problem,
                               AnalyticProfile(problem.model, problem.training).description(),
                               command_.toStdString() + " --html report.html",
                               {}};
  for (const Contender& contender : runs_.contenders()) report.planners.push_back(comparedOf(contender));
  return writeFileAtomically(file.toStdString(), report::compareHtml(report));
}

void ComparePage::askForReport() {
  const QString file =
      QFileDialog::getSaveFileName(this, tr("Export the report"), QStringLiteral("compare.html"), tr("Web pages (*.html)"));
  if (file.isEmpty()) return;
  if (const auto written = exportReport(file); !written)
    workspace_.messages.show(MessageLine::Kind::Error,
                             tr("The report could not be written: %1").arg(QString::fromStdString(written.error().text())));
}

void ComparePage::fitColumns() {
  if (isSplitByHand_) return;
  const int whole = results_->height(), wanted = columnRow_->sizeHint().height() + 4;
  const int top = std::min(wanted, whole * 11 / 20);
  results_->setSizes({top, whole - top});
}

void ComparePage::poll() {
  const int index = runs_.runningIndex();
  if (index < 0) return;
  const SearchSnapshot now = runs_.liveSearch();
  columns_[static_cast<std::size_t>(index)]->setProgress(now);
  emit workspace_.jobProgressed(job_, progressOf(now), progressText(now));
}

void ComparePage::use(int index) {
  const Contender& contender = runs_.contenders()[static_cast<std::size_t>(index)];
  const std::string name = freshPlanName(workspace_.document.project(), contender.planner->name);
  workspace_.document.edit(tr("Use the plan of %1").arg(QString::fromStdString(contender.planner->name)), [&](Project& project) {
    project.plans.push_back({name, contender.result->value()});
  });
  workspace_.goTo(Mode::Plan);
}

void ComparePage::refresh(Parts parts) {
  if (parts == kAllParts) {  // another project
    if (runs_.isRunning()) emit workspace_.jobEnded(job_);
    runs_.abandon();
    timer_.stop();
    showTimer_.stop();
    stack_->setCurrentIndex(0);
  }
  if (!(parts & kPlanInputs)) return;
  refreshControls();
  refreshStale();
}

void ComparePage::refreshControls() {
  const bool runs = runs_.isRunning();
  start_->setEnabled(!runs && missing().isEmpty() && !ticked().empty());
  stop_->setEnabled(runs);
  export_->setEnabled(!runs && runs_.best().has_value());
}

void ComparePage::refreshStale() {
  bool isStale = false;
  if (!runs_.contenders().empty()) {
    const auto problem = workspace_.document.project().problem();
    isStale = !problem || inputsHash(problem->cluster, problem->model, problem->training) != comparedInputs_;
  }
  tintAsWarning(*stale_);
  stale_->setVisible(isStale);
}

}  // namespace evenkeel::gui
