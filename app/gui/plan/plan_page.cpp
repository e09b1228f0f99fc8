// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/plan_page.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStandardItemModel>
#include <QTime>
#include <algorithm>

#include "app/gui/plan/plan_view.h"
#include "app/gui/plan/search_command.h"
#include "app/gui/plan/search_controls.h"
#include "app/gui/plan/search_panel.h"
#include "app/gui/widgets/elided_label.h"

namespace evenkeel::gui {
namespace {

constexpr int kPollMs = 40;                                                     // 25 times a second
constexpr int kJobPollMs = 250;                                                 // the status bar needs less
constexpr int kLeastPlanWidth = 180;                                            // pixels, of the list of plans

QString searchingText() { return PlanPage::tr("(best of the search)"); }

}  // namespace

std::string freshPlanName(const Project& project, const std::string& planner) {
  const std::string plain = planner + ", " + QTime::currentTime().toString(QStringLiteral("HH:mm")).toStdString();
  std::string name = plain;
  for (int number = 2; std::ranges::find(project.plans, name, &NamedPlan::name) != project.plans.end(); ++number)
    name = plain + " (" + std::to_string(number) + ")";
  return name;
}

PlanPage::PlanPage(Workspace& workspace, QString folder, QWidget* parent)
    : Page(workspace, parent),
      folder_(std::move(folder)),
      planner_(new QComboBox),
      options_(new QLineEdit),
      limit_(new QDoubleSpinBox),
      search_(new QPushButton(tr("Search"))),
      stop_(new QPushButton(tr("Stop, keep best"))),
      plans_(new QComboBox),
      stale_(new ElidedLabel),
      again_(new QPushButton(tr("Search again"))),
      panel_(new SearchPanel),
      view_(new PlanView) {
  setObjectName(QStringLiteral("planPage"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(12, 10, 12, 10);
  layout->setSpacing(10);
  layout->addWidget(makeControls());
  layout->addWidget(panel_);
  chooser_ = makeChooser();
  layout->addWidget(chooser_);
  layout->addWidget(view_, 1);

  timer_.setInterval(kPollMs);
  jobTimer_.setInterval(kJobPollMs);
  connect(&timer_, &QTimer::timeout, this, &PlanPage::poll);
  connect(&jobTimer_, &QTimer::timeout, this, [this] {
    const SearchSnapshot now = session_.snapshot();
    emit workspace_.jobProgressed(job_, progressOf(now), progressText(now));
  });
  connect(&session_, &SearchSession::finished, this, &PlanPage::finish);
  connect(&workspace_.document, &ProjectDocument::changed, this, &PlanPage::refresh);
  connect(&workspace_.selection, &Selection::changed, this, &PlanPage::followSelection);
  connect(view_, &PlanView::shown, this, &PlanPage::followSelection);
  connect(view_, &PlanView::stageSelected, this, &PlanPage::selectStage);
  refresh(kAllParts);
}

QWidget* PlanPage::makeControls() {
  planner_->setObjectName(QStringLiteral("planner"));
  planner_->setAccessibleName(tr("Planner"));
  for (const Planner& planner : planners()) {
    planner_->addItem(QString::fromStdString(planner.name));
    planner_->setItemData(planner_->count() - 1, QString::fromStdString(planner.summary), Qt::ToolTipRole);
  }
  options_->setObjectName(QStringLiteral("plannerOptions"));
  options_->setAccessibleName(tr("Options of the planner"));
  options_->setPlaceholderText(tr("name=value …"));
  options_->setClearButtonEnabled(true);
  limit_->setObjectName(QStringLiteral("timeLimit"));
  setUpTimeLimit(*limit_);
  search_->setObjectName(QStringLiteral("searchStart"));
  search_->setDefault(true);
  search_->setToolTip(tr("Search for a plan (F5)"));
  stop_->setObjectName(QStringLiteral("searchStop"));
  stop_->setToolTip(tr("End the search and keep the best plan until now (Shift+F5)"));
  connect(search_, &QPushButton::clicked, this, &PlanPage::search);
  connect(again_, &QPushButton::clicked, this, &PlanPage::search);
  connect(stop_, &QPushButton::clicked, this, &PlanPage::stop);
  connect(planner_, &QComboBox::currentIndexChanged, this, &PlanPage::refreshControls);
  addKey(*this, QKeySequence(Qt::Key_F5), *search_);
  addKey(*this, QKeySequence(Qt::SHIFT | Qt::Key_F5), *stop_);
  auto* replayFile = new QPushButton(tr("Replay…"));
  replayFile->setObjectName(QStringLiteral("searchReplay"));
  replayFile->setToolTip(tr("Show a search that evenkeel-cli plan --events has recorded"));
  connect(replayFile, &QPushButton::clicked, this, [this] {
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Replay a search"), {}, tr("Events (*.jsonl *.json *.events);;All files (*)"));
    if (!path.isEmpty()) replay(path);
  });

  widen({search_, stop_, replayFile, again_});

  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  const auto add = [&](const QString& text, QWidget* widget) {
    auto* label = new QLabel(text);
    label->setBuddy(widget);
    layout->addWidget(label);
    layout->addWidget(widget);
    layout->addSpacing(10);
  };
  add(tr("Planner"), planner_);
  add(tr("Options"), options_);
  add(tr("Time limit"), limit_);
  layout->addStretch();
  layout->addWidget(replayFile);
  layout->addWidget(stop_);
  layout->addWidget(search_);
  return bar;
}

QWidget* PlanPage::makeChooser() {
  plans_->setObjectName(QStringLiteral("plans"));
  plans_->setAccessibleName(tr("Plan"));
  plans_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  plans_->setMinimumWidth(kLeastPlanWidth);  // a long name gives way to what stands beside it
  stale_->setObjectName(QStringLiteral("planStale"));
  stale_->setText(tr("! This plan is for the project before your edit: cluster, model or training have changed since."));
  again_->setObjectName(QStringLiteral("searchAgain"));
  connect(plans_, &QComboBox::activated, this, [this] {
    isFollowing_ = plans_->currentData().toString().isEmpty();
    failure_.reset();
    showChosen();
  });
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(tr("Plan"));
  label->setBuddy(plans_);
  layout->addWidget(label);
  layout->addWidget(plans_);
  layout->addSpacing(10);
  layout->addWidget(stale_);
  layout->addWidget(again_);
  layout->addStretch();
  save_ = new QPushButton(tr("Save plan…"));
  save_->setObjectName(QStringLiteral("planSave"));
  save_->setToolTip(tr("As a file that evenkeel-cli evaluates, simulates and launches"));
  remove_ = new QPushButton(tr("Remove"));
  remove_->setObjectName(QStringLiteral("planRemove"));
  remove_->setToolTip(tr("Take this plan out of the project; undo brings it back"));
  connect(save_, &QPushButton::clicked, this, &PlanPage::saveChosen);
  connect(remove_, &QPushButton::clicked, this, &PlanPage::removeChosen);
  widen({save_, remove_});
  layout->addWidget(save_);
  layout->addWidget(remove_);
  return bar;
}

QString PlanPage::missing() const {
  return workspace_.document.project().problem() ? QString() : tr("Draw a cluster and choose a model first");
}

Result<SearchRequest> PlanPage::request() const {
  auto problem = workspace_.document.project().problem();
  if (!problem) return invalidInput("project", missing().toStdString());
  const auto planner = plannerNamed(planner_->currentText().toStdString());
  if (!planner) return planner.error();
  auto options = plannerOptionsOf(options_->text());
  if (!options) return std::move(options).error();
  SearchRequest request{*planner, *std::move(problem), *std::move(options), {}};
  if (limit_->value() > 0) request.budget.timeLimit = Seconds{limit_->value()};
  return request;
}

void PlanPage::search() {
  auto wanted = request();
  if (!wanted) return workspace_.messages.showError(wanted.error());
  if (session_.isRunning()) emit workspace_.jobEnded(job_);
  workspace_.showCommand(searchCommand(*wanted, folder_));
  const QString title = tr("Search with %1").arg(planner_->currentText());
  session_.start(*std::move(wanted));
  isReplay_ = false;
  isFollowing_ = true;
  failure_.reset();
  job_ = nextSearchJob();
  emit workspace_.jobStarted(job_, title, [this] { stop(); });
  timer_.start();
  jobTimer_.start();
  refreshPlans();
  refreshControls();
  poll();
}

void PlanPage::stop() { session_.stop(); }

void PlanPage::replay(const QString& eventsFile) {
  if (session_.isRunning()) emit workspace_.jobEnded(job_);
  isReplay_ = true;
  isFollowing_ = true;
  workspace_.log(tr("Replay of %1").arg(eventsFile));
  session_.replay(eventsFile);
}

void PlanPage::poll() {
  if (!isFollowing_) return;
  const SearchSnapshot now = session_.snapshot();
  panel_->setSearch(now);
  if (now.best) view_->setPlan(now.best);
  else if (!failure_) view_->showReason(tr("Searching"), tr("The best plan appears here as soon as there is one."));
}

void PlanPage::finish() {
  timer_.stop();
  jobTimer_.stop();
  if (!isReplay_) emit workspace_.jobEnded(job_);
  const Result<Plan>& result = *session_.result();
  if (result) {
    keep(*result);
  } else {
    failure_ = result.error();
    isFollowing_ = false;
    if (isReplay_) workspace_.messages.showError(result.error());
  }
  refreshPlans();
  refreshControls();
  showChosen();
}

void PlanPage::keep(const Plan& plan) {
  const QString planner = QString::fromStdString(session_.snapshot().planner);
  const std::string name = freshPlanName(workspace_.document.project(), planner.toStdString());
  const bool wasFollowing = isFollowing_;
  isFollowing_ = false;
  workspace_.document.edit(tr("Find a plan with %1").arg(planner), [&](Project& project) {
    project.plans.push_back({name, plan});
  });
  if (wasFollowing) plans_->setCurrentIndex(plans_->findData(QString::fromStdString(name)));
  workspace_.log(tr("%1 found a plan: kept as \"%2\"").arg(planner, QString::fromStdString(name)));
}

void PlanPage::refresh(Parts parts) {
  if (parts == kAllParts && job_ != 0) {  // another project: what was found for the old one must not enter it
    if (session_.isRunning()) emit workspace_.jobEnded(job_);
    session_.abandon();
    timer_.stop();
    jobTimer_.stop();
    isFollowing_ = false;
    failure_.reset();
  }
  if (!(parts & (kPlanInputs | Part::Plans))) return;
  if ((parts & kPlanInputs) != 0 && !session_.isRunning()) failure_.reset();  // it was about other inputs
  if (parts.testFlag(Part::Plans)) refreshPlans();
  refreshControls();
  if (!isFollowing_ && !failure_) showChosen();
  else showStale();
}

void PlanPage::refreshPlans() {
  const QString before = plans_->currentData().toString();
  const QSignalBlocker blocker(plans_);
  plans_->clear();
  if (isFollowing_ && session_.isRunning()) plans_->addItem(searchingText(), QString());
  for (const NamedPlan& plan : workspace_.document.project().plans) {
    const QString name = QString::fromStdString(plan.name);
    plans_->addItem(name, name);
  }
  const int same = plans_->findData(before);
  plans_->setCurrentIndex(isFollowing_ && session_.isRunning() ? 0 : same >= 0 ? same : plans_->count() - 1);
}

void PlanPage::refreshControls() {
  const bool runs = session_.isRunning(), isPossible = missing().isEmpty();
  search_->setEnabled(isPossible && !runs);
  stop_->setEnabled(runs);
  again_->setEnabled(isPossible && !runs);
  chooser_->setVisible(plans_->count() > 0);
  const auto planner = plannerNamed(planner_->currentText().toStdString());
  if (!planner) return;
  QStringList lines{QString::fromStdString((*planner)->summary)};
  for (const PlannerOptionInfo& option : (*planner)->options)
    lines << QStringLiteral("%1=%2: %3")
                 .arg(QString::fromStdString(option.name), QString::fromStdString(option.values),
                      QString::fromStdString(option.meaning));
  planner_->setToolTip(lines.front());
  options_->setToolTip(lines.mid(1).isEmpty() ? tr("This planner has no options") : lines.mid(1).join(QLatin1Char('\n')));
  options_->setEnabled(!(*planner)->options.empty());
  const auto problem = workspace_.document.project().problem();
  if (problem) {
    panel_->setPlaceholder(
        tr("%1 on %2, %3 samples an iteration.\nSearch (F5) shows here how the best plan gets faster.")
            .arg(QString::fromStdString(problem->model.name), deviceCounts(problem->cluster, problem->cluster.devices()))
            .arg(problem->training.globalBatch));
  }
}

const NamedPlan* PlanPage::chosen() const {
  const auto& plans = workspace_.document.project().plans;
  const auto found = std::ranges::find(plans, plans_->currentData().toString().toStdString(), &NamedPlan::name);
  return found == plans.end() ? nullptr : &*found;
}

void PlanPage::showChosen() {
  showStale();
  if (failure_) {
    panel_->setSearch(session_.snapshot());
    const bool none = failure_->code == Error::Code::Infeasible;
    QString text = QString::fromStdString(failure_->where + ": " + failure_->what) + QStringLiteral(".");
    if (!failure_->remedy.empty())
      text += QStringLiteral("\n") + tr("Way out: %1.").arg(QString::fromStdString(failure_->remedy));
    PlanView::Actions actions;
    if (none)
      actions = {{tr("Change the training"), [this] { workspace_.goTo(Mode::Model); }},
                 {tr("Change the cluster"), [this] { workspace_.goTo(Mode::Cluster); }}};
    return view_->showReason(none ? tr("No plan fits") : tr("The search found no plan"), text, std::move(actions));
  }
  if (isFollowing_) return poll();
  const NamedPlan* plan = chosen();
  if (plan == nullptr) {
    panel_->setSearch({});
    return view_->showReason(
        tr("No plan yet"),
        tr("A planner lays the model out over the devices: pipelines, stages, layers, micro-batches, recomputation."),
        {{tr("Search"), [this] { search(); }}});
  }
  const SearchSnapshot last = session_.snapshot();
  const bool isOfLastSearch = session_.result() && session_.result()->ok() && session_.result()->value() == plan->plan;
  panel_->setSearch(isOfLastSearch ? last : rememberedSearch(plan->plan));
  view_->setPlan(std::shared_ptr<const Plan>(workspace_.document.snapshot(), &plan->plan));
  followSelection();
}

void PlanPage::saveChosen() {
  const NamedPlan* plan = chosen();
  if (plan == nullptr) return;
  const QString path = QFileDialog::getSaveFileName(this, tr("Save the plan"), QStringLiteral("plan.json"), tr("Plans (*.json)"));
  if (path.isEmpty()) return;
  if (auto written = writeFileAtomically(path.toStdString(), prettyText(toJson(plan->plan))); !written)
    return workspace_.messages.showError(written.error());
  workspace_.showCommand(QStringLiteral("evenkeel-cli evaluate ") + path);
}

void PlanPage::removeChosen() {
  const NamedPlan* plan = chosen();
  if (plan == nullptr) return;
  workspace_.document.edit(tr("Remove plan %1").arg(QString::fromStdString(plan->name)), [name = plan->name](Project& project) {
    std::erase_if(project.plans, [&](const NamedPlan& other) { return other.name == name; });
  });
}

void PlanPage::showStale() {
  for (QPushButton* button : {save_, remove_}) button->setEnabled(chosen() != nullptr);
  const NamedPlan* plan = isFollowing_ || failure_ ? nullptr : chosen();
  const bool isOld = plan != nullptr && isStale(plan->plan, workspace_.document.project());
  tintAsWarning(*stale_);
  stale_->setVisible(isOld);
  again_->setVisible(isOld);
}

void PlanPage::selectStage(int pipeline, int stage) {
  const NamedPlan* plan = chosen();
  if (!view_->plan()) return;
  for (const PipelineFacts& group : view_->facts().pipelines) {
    if (!group.contains(pipeline)) continue;
    workspace_.selection.setStage(StageRef{plan != nullptr && !isFollowing_ ? plan->name : std::string(), pipeline, stage},
                                  machinesOf(*view_->plan(), group, stage));
  }
}

void PlanPage::followSelection() {
  const auto& stage = workspace_.selection.stage();
  const NamedPlan* plan = chosen();
  const bool isOurs = stage && (isFollowing_ ? stage->plan.empty() : plan != nullptr && stage->plan == plan->name);
  view_->setSelectedStage(isOurs ? std::optional(std::pair(stage->pipeline, stage->stage)) : std::nullopt);
}

}  // namespace evenkeel::gui
