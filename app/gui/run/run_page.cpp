// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/run_page.h"

#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "app/gui/run/launch_form.h"
#include "app/gui/run/login_dialog.h"
#include "app/gui/run/preflight_view.h"
#include "app/gui/run/run_list.h"
#include "app/gui/run/run_view.h"
#include "app/gui/run/running_runs.h"
#include "app/gui/widgets/empty_state.h"
#include "app/gui/widgets/quantity_text.h"
#include "app/gui/widgets/stack.h"

namespace evenkeel::gui {
namespace {

constexpr int kPollMs = 50;
constexpr int kReloadMs = 2000;   // of the list, while steps come
constexpr int kJobId = 0x52554e;  // of the Jobs panel: this page has one job at a time

bool isBusy(SessionPhase phase) {
  return phase == SessionPhase::Checking || phase == SessionPhase::Starting || phase == SessionPhase::Following;
}

QFrame* line() {
  auto* frame = new QFrame;
  frame->setFrameShape(QFrame::HLine);
  frame->setFrameShadow(QFrame::Plain);
  frame->setForegroundRole(QPalette::Mid);
  return frame;
}

}  // namespace

RunPage::RunPage(Workspace& workspace, std::filesystem::path programs, QWidget* parent)
    : Page(workspace, parent),
      form_(new LaunchForm(workspace, std::move(programs))),
      runs_(new RunList),
      view_(new RunView),
      right_(new Stack),
      desk_(std::make_shared<LoginDesk>()),
      running_(new RunningRuns(this)),
      tellDesktop_(desktopMessageOf(*this)) {
  setObjectName(QStringLiteral("runPage"));
  noPlan_ = new EmptyState(tr("No run yet: find a plan first"),
                           tr("A plan says which device trains what. Earlier runs stand in the list at the left."),
                           {{tr("Go to Plan"), [this] { workspace_.goTo(Mode::Plan); }}});
  noRun_ = new EmptyState(
      tr("No run yet"),
      tr("Choose a plan and the text to train on at the left, then launch it. A run goes on when you close Evenkeel."), {});
  for (QWidget* widget : {noPlan_, noRun_, static_cast<QWidget*>(view_)}) right_->addWidget(widget);

  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(12, 12, 12, 12);
  column->setSpacing(12);
  column->addWidget(form_);
  column->addWidget(line());
  column->addWidget(runs_, 1);
  left->setMinimumWidth(300);
  auto* scroll = new QScrollArea;  // a low window must not paint the form's rows over each other
  scroll->setWidget(left);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setMinimumWidth(300);
  auto* rightBox = new QWidget;
  auto* rightLayout = new QVBoxLayout(rightBox);
  rightLayout->setContentsMargins(8, 12, 12, 12);
  rightLayout->addWidget(right_);
  auto* split = new QSplitter(Qt::Horizontal);
  split->addWidget(scroll);
  split->addWidget(rightBox);
  split->setStretchFactor(0, 0);
  split->setStretchFactor(1, 1);
  split->setSizes({340, 900});
  split->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(split);

  connect(form_, &LaunchForm::launchRequested, this, &RunPage::launch);
  connect(form_, &LaunchForm::checkRequested, this, &RunPage::check);
  connect(runs_, &RunList::opened, this, &RunPage::open);
  connect(runs_, &RunList::reloaded, this, [this] {
    for (const RunRow& row : runs_->rows()) {
      if (row.run == state_.run) view_->setStarted(row.started);
    }
  });
  connect(view_, &RunView::stopRequested, this, &RunPage::askStop);
  connect(view_, &RunView::resumeRequested, form_, &LaunchForm::setResume);
  connect(view_, &RunView::detachRequested, this, [this] {
    if (session_) session_->detach();
  });
  connect(&workspace_.document, &ProjectDocument::changed, this, [this](Parts parts) {
    if (parts == kAllParts) isLaunch_ = false;  // another project: what runs is not its run
    refresh();
  });
  poll_.setInterval(kPollMs);
  connect(&poll_, &QTimer::timeout, this, &RunPage::poll);
  refresh();
}

RunPage::~RunPage() { desk_->close(); }  // no thread waits for an answer that cannot come any more

void RunPage::showEvent(QShowEvent* event) {
  Page::showEvent(event);
  runs_->reload();
}

void RunPage::refresh() {
  runs_->setOwn(workspace_.document.project().runs);
  QWidget* shown = session_ ? static_cast<QWidget*>(view_) : workspace_.document.project().plans.empty() ? noPlan_ : noRun_;
  right_->setCurrentWidget(shown);
  form_->setBusy(!session_ || !isBusy(state_.phase) ? QString()
                 : state_.phase == SessionPhase::Following
                     ? tr("A run is being followed: detach from it or stop it to launch another.")
                     : tr("Wait until the checks are done, or give up the start."));
  runs_->setEnabled(!session_ || state_.phase != SessionPhase::Starting);
}

JobSession& RunPage::newSession(const QString& title) {
  if (session_) {
    session_->detach();
    leaving_.push_back(std::move(session_));
  }
  desk_->beginAnew();
  session_ = std::make_unique<JobSession>(desk_);
  state_ = {};
  title_ = title;
  step_ = 0;
  view_->begin(title);
  sinceReload_.start();
  poll_.start();
  return *session_;
}

void RunPage::check() {
  isLaunch_ = false;
  if (auto request = form_->request()) newSession(tr("Preflight of %1").arg(form_->planName())).check(*std::move(request));
  poll();
}

void RunPage::launch() {
  auto request = form_->request();
  if (!request) return;
  isLaunch_ = true;
  newSession(QString::fromStdString(request->plan.model.name) + QStringLiteral(" · ") + form_->planName())
      .start(*std::move(request));
  poll();
}

void RunPage::open(const std::string& run) {
  isLaunch_ = false;
  newSession({}).attach(run);
  workspace_.showCommand(QStringLiteral("evenkeel-cli attach ") + QString::fromStdString(run));
  poll();
}

void RunPage::poll() {
  std::erase_if(leaving_, [](const std::unique_ptr<JobSession>& session) { return !isBusy(session->takeUpdate().state.phase); });
  askLogin();
  if (!session_) return;
  const SessionUpdate update = session_->takeUpdate();
  const bool wasAlive =
      isBusy(state_.phase) && (isLaunch_ || state_.job == JobState::Running);  // else an ended one is shown again
  const bool changed = update.state.phase != state_.phase || update.state.job != state_.job || update.state.run != state_.run;
  state_ = update.state;
  view_->take(update);
  showJob(update);
  if (changed || (!update.steps.empty() && sinceReload_.elapsed() > kReloadMs)) {
    sinceReload_.start();
    runs_->reload();
  }
  if (changed) {
    if (!state_.run.empty()) note(state_.run);
    if (wasAlive && state_.phase == SessionPhase::Over) tellEnd();
    if (state_.phase == SessionPhase::Over && state_.error && state_.run.empty() && state_.rows.empty())
      workspace_.messages.showError(*state_.error);
    refresh();
  }
  if (!isBusy(state_.phase) && !state_.isStopping && leaving_.empty() && !desk_->question()) poll_.stop();
}

void RunPage::askLogin() {
  const auto question = desk_->question();
  if (login_ && (!question || question->id != login_->questionId())) login_->close();  // whoever asked has gone
  if (login_ || !question) return;
  login_ = new LoginDialog(*question, *desk_, this);
  connect(login_, &LoginDialog::settled, &workspace_, &Workspace::showCommand);
  login_->open();
}

void RunPage::tellEnd() {
  const QString run = QString::fromStdString(state_.run);
  const QString step = tr("step %1").arg(exactText(step_));
  switch (state_.job) {
    case JobState::Finished: return tellDesktop_(tr("Run finished"), tr("%1: %2, loss %3").arg(run, step).arg(loss_, 0, 'f', 3));
    case JobState::Stopped: return tellDesktop_(tr("Run stopped"), tr("%1: %2").arg(run, step));
    case JobState::Failed:
      return tellDesktop_(tr("Run failed"),
                          tr("%1: %2").arg(run, state_.failure ? QString::fromStdString(state_.failure->reason) : step));
    case JobState::Preparing:
    case JobState::Running: break;
  }
}

/// A run that was started from the project belongs to it.
void RunPage::note(const std::string& run) {
  const auto& runs = workspace_.document.project().runs;
  if (!isLaunch_ || std::ranges::find(runs, run) != runs.end()) return;
  ProjectDocument& document = workspace_.document;
  const bool wasSaved = !document.path().isEmpty() && !document.isModified() && !document.isChangedOnDisk();
  document.edit(tr("Note run %1").arg(QString::fromStdString(run)), [&](Project& project) { project.runs.push_back(run); });
  // Nothing else is new, and who closes the window while a run goes on is not to be asked about it.
  if (!wasSaved) return;
  if (auto saved = document.saveAs(document.path()); !saved) workspace_.messages.showError(saved.error());
}

void RunPage::showJob(const SessionUpdate& update) {
  if (!update.steps.empty()) {
    step_ = update.steps.back().step;
    loss_ = update.steps.back().loss;
  }
  const bool isActive = isBusy(state_.phase);
  if (isActive && !isInJobs_) {
    isInJobs_ = true;
    emit workspace_.jobStarted(kJobId, title_.isEmpty() ? tr("Run %1").arg(QString::fromStdString(state_.run)) : title_,
                               [this] { askStop(); });
  }
  if (!isActive && isInJobs_) {
    isInJobs_ = false;
    emit workspace_.jobEnded(kJobId);
  }
  if (!isActive) return;
  if (step_ > 0) {
    const QString of = state_.totalSteps > 0 ? tr("step %1 of %2").arg(exactText(step_), exactText(state_.totalSteps))
                                             : tr("step %1").arg(exactText(step_));
    emit workspace_.jobProgressed(
        kJobId, state_.totalSteps > 0 ? static_cast<double>(step_) / static_cast<double>(state_.totalSteps) : -1,
        tr("%1, loss %2").arg(of).arg(loss_, 0, 'f', 3));
  } else {
    const QString copying = copyText(state_);
    emit workspace_.jobProgressed(kJobId, copyFraction(state_), copying.isEmpty() ? tr("preparing") : copying);
  }
}

void RunPage::askStop() {
  if (!session_ || state_.isStopping) return;
  if (state_.run.empty()) return session_->detach();  // nothing runs yet
  const QString run = QString::fromStdString(state_.run);
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("Stop the run?"), tr("Stop run %1 on all of its nodes now?").arg(run),
                              QMessageBox::NoButton, this);
  box->setObjectName(QStringLiteral("stopQuestion"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setInformativeText(state_.checkpointStep > 0
                               ? tr("What it has trained since the checkpoint of step %1 is lost. Detach instead to let it go on without this window.").arg(exactText(state_.checkpointStep))
                               : tr("What it has trained since its start is lost. Detach instead to let it go on without this window."));
  QPushButton* stop = box->addButton(tr("Stop now"), QMessageBox::DestructiveRole);
  stop->setObjectName(QStringLiteral("stopNow"));
  box->setDefaultButton(box->addButton(QMessageBox::Cancel));
  connect(stop, &QPushButton::clicked, this, [this, run] {
    if (!session_ || state_.run != run.toStdString()) return;
    session_->stopJob();
    workspace_.showCommand(QStringLiteral("evenkeel-cli stop ") + run);
    poll_.start();
    poll();
  });
  box->open();
}

}  // namespace evenkeel::gui
