// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/launch_form.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDoubleValidator>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QFormLayout>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QStandardPaths>
#include <QToolButton>
#include <algorithm>

#include "app/gui/run/launchable.h"
#include "app/gui/run/settings_dialog.h"
#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kUsualSteps = 1000;
constexpr std::size_t kMostObjections = 4;  // the rest is counted
const QString kDataSetting = QStringLiteral("run/data");

QString planFolder() { return QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/plans"); }

QString objectionText(const std::vector<Violation>& violations) {
  QStringList lines{LaunchForm::tr("✕ This plan cannot be launched:")};
  for (std::size_t i = 0; i < std::min(violations.size(), kMostObjections); ++i) {
    const Violation& v = violations[i];
    lines << QString::fromStdString("• " + v.where + ": " + v.what + (v.remedy.empty() ? "" : "; " + v.remedy));
  }
  if (violations.size() > kMostObjections) lines << LaunchForm::tr("• and %1 more").arg(violations.size() - kMostObjections);
  return lines.join(QLatin1Char('\n'));
}

QString counted(std::size_t count, const QString& one, const QString& many) {
  return exactText(static_cast<std::int64_t>(count)) + QLatin1Char(' ') + (count == 1 ? one : many);
}

template <class W>
W* named(W* widget, const QString& name) {
  widget->setObjectName(name);
  return widget;
}

}  // namespace

LaunchForm::LaunchForm(Workspace& workspace, std::filesystem::path programs, QWidget* parent)
    : QWidget(parent),
      workspace_(workspace),
      programs_(std::move(programs)),
      plans_(named(new QComboBox, QStringLiteral("runPlan"))),
      summary_(named(new QLabel, QStringLiteral("runPlanSummary"))),
      data_(named(new QLineEdit, QStringLiteral("runData"))),
      steps_(named(new QSpinBox, QStringLiteral("runSteps"))),
      learningRate_(named(new QLineEdit, QStringLiteral("runLearningRate"))),
      seed_(named(new QSpinBox, QStringLiteral("runSeed"))),
      checkpointEvery_(named(new QSpinBox, QStringLiteral("runCheckpointEvery"))),
      resume_(named(new QLineEdit, QStringLiteral("runResume"))),
      settings_(named(new QLabel, QStringLiteral("runSettings"))),
      changeSettings_(named(new QToolButton, QStringLiteral("runChangeSettings"))),
      local_(named(new QCheckBox(tr("All nodes are this machine")), QStringLiteral("runLocal"))),
      hint_(named(new QLabel, QStringLiteral("runHint"))),
      command_(named(new QPlainTextEdit, QStringLiteral("runCommand"))),
      copy_(named(new QPushButton(tr("Copy command")), QStringLiteral("runCopy"))),
      check_(named(new QPushButton(tr("Check")), QStringLiteral("runCheck"))),
      launch_(named(new QPushButton(tr("Launch")), QStringLiteral("runLaunch"))) {
  steps_->setRange(1, 1'000'000'000);
  steps_->setValue(kUsualSteps);
  steps_->setGroupSeparatorShown(true);
  seed_->setRange(0, 1'000'000'000);
  seed_->setValue(1);
  checkpointEvery_->setRange(0, 1'000'000'000);
  checkpointEvery_->setSpecialValueText(tr("never"));
  checkpointEvery_->setPrefix(tr("every "));
  checkpointEvery_->setSuffix(tr(" steps"));
  checkpointEvery_->setGroupSeparatorShown(true);
  checkpointEvery_->setToolTip(tr("Whole tensors, in the run's directory on the machine of rank 0; the newest three are kept, and the last step is saved too"));
  resume_->setPlaceholderText(tr("from the beginning"));
  resume_->setClearButtonEnabled(true);
  resume_->setToolTip(tr("A checkpoint, or a folder of checkpoints, of the same model, under whatever plan it was written"));
  learningRate_->setText(QString::number(Run{}.learningRate.peak));
  auto* rate = new QDoubleValidator(1e-9, 10, 12, learningRate_);
  rate->setLocale(QLocale::c());
  learningRate_->setValidator(rate);
  learningRate_->setToolTip(tr("Peak, after a warm-up of 10 steps; cosine down to a tenth of it at the last step"));
  local_->setToolTip(tr(
      "Run every rank here, whatever ssh target the cluster names; otherwise each node is reached over SSH as the cluster says"));
  plans_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  plans_->setMinimumContentsLength(12);
  summary_->setForegroundRole(QPalette::PlaceholderText);
  summary_->setWordWrap(true);
  hint_->setWordWrap(true);
  hint_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  data_->setText(QSettings().value(kDataSetting).toString());
  data_->setPlaceholderText(tr("text, folder or tokens (.bin)"));
  command_->setReadOnly(true);
  command_->setAccessibleName(tr("The command that does the same"));
  command_->setToolTip(command_->accessibleName());
  QFont mono = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  mono.setPointSizeF(font().pointSizeF() * 0.95);
  command_->setFont(mono);
  command_->setFixedHeight(QFontMetrics(mono).lineSpacing() * 5 + 10);

  auto* form = new QFormLayout(this);
  form->setContentsMargins(0, 0, 0, 0);
  form->setVerticalSpacing(6);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(tr("Plan"), plans_);
  form->addRow(QString(), summary_);
  form->addRow(tr("Data"), makeDataRow());
  form->addRow(tr("Steps"), steps_);
  form->addRow(tr("Learning rate"), learningRate_);
  form->addRow(tr("Seed"), seed_);
  form->addRow(tr("Checkpoint"), checkpointEvery_);
  form->addRow(tr("Go on from"), resume_);
  form->addRow(tr("Settings"), makeSettingsRow());
  form->addRow(QString(), local_);
  form->addRow(command_);
  form->addRow(makeButtons());
  form->addRow(hint_);  // comes and goes, and must not move the buttons

  connect(plans_, &QComboBox::currentIndexChanged, this, &LaunchForm::choosePlan);
  for (QLineEdit* line : {data_, learningRate_, resume_}) connect(line, &QLineEdit::textChanged, this, &LaunchForm::refresh);
  for (QSpinBox* box : {steps_, seed_, checkpointEvery_}) connect(box, &QSpinBox::valueChanged, this, &LaunchForm::refresh);
  connect(local_, &QCheckBox::toggled, this, &LaunchForm::refresh);
  connect(&workspace_.document, &ProjectDocument::changed, this, [this](Parts parts) {
    if (parts & Part::Plans) fillPlans();
    else if (parts & kPlanInputs) judge();
  });
  fillPlans();
}

QWidget* LaunchForm::makeDataRow() {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(data_, 1);
  auto* browse = named(new QToolButton, QStringLiteral("runBrowse"));
  browse->setText(QStringLiteral("…"));
  browse->setToolTip(tr("Choose a text file, a folder of text files, or tokens as evenkeel-cli tokenize and Megatron-LM write them"));
  browse->setAccessibleName(browse->toolTip());
  browse->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(browse);
  const auto take = [this](const QString& path) {
    if (!path.isEmpty()) setData(path);
  };
  menu->addAction(tr("Text file…"), this,
                  [this, take] { take(QFileDialog::getOpenFileName(this, tr("Text to train on"), data_->text())); });
  menu->addAction(tr("Tokens…"), this, [this, take] {
    take(QFileDialog::getOpenFileName(this, tr("Tokens to train on"), data_->text(), tr("Megatron-LM tokens (*.bin)")));
  });
  menu->addAction(tr("Folder…"), this, [this, take] {
    take(QFileDialog::getExistingDirectory(this, tr("Folder of text to train on"), data_->text()));
  });
  browse->setMenu(menu);
  layout->addWidget(browse);
  return row;
}

QWidget* LaunchForm::makeSettingsRow() {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  // One line, cut off where it is long: what wraps makes the form find its height again and again.
  settings_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  changeSettings_->setText(tr("Change…"));
  changeSettings_->setToolTip(tr("Schedule, optimizer, clipping, dropout, evaluation, what happens at the end"));
  connect(changeSettings_, &QToolButton::clicked, this, &LaunchForm::changeSettings);
  layout->addWidget(settings_, 1);
  layout->addWidget(changeSettings_);
  return row;
}

void LaunchForm::changeSettings() {
  auto* dialog = new SettingsDialog(run(), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    more_ = dialog->run();
    refresh();
  });
  dialog->open();
}

QWidget* LaunchForm::makeButtons() {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  launch_->setIcon(icon("launch", palette()));
  launch_->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Return));
  launch_->setToolTip(
      tr("Check everything, copy what the nodes lack, start (Ctrl+Enter). The run goes on when you close Evenkeel."));
  check_->setToolTip(tr("Look at every node and start nothing"));
  layout->addWidget(copy_);
  layout->addStretch();
  layout->addWidget(check_);
  layout->addWidget(launch_);
  connect(copy_, &QPushButton::clicked, this, [this] {
    QGuiApplication::clipboard()->setText(command());
    workspace_.showCommand(command());
  });
  connect(check_, &QPushButton::clicked, this, &LaunchForm::checkRequested);
  connect(launch_, &QPushButton::clicked, this, [this] {
    QSettings().setValue(kDataSetting, data_->text());
    workspace_.showCommand(command());
    emit launchRequested();
  });
  return row;
}

void LaunchForm::setData(const QString& path) { data_->setText(path); }

void LaunchForm::setResume(const QString& checkpoint) {
  resume_->setText(checkpoint);
  resume_->setFocus(Qt::OtherFocusReason);
}

void LaunchForm::setBusy(const QString& why) {
  if (busy_ == why) return;
  busy_ = why;
  refresh();
}

const Plan* LaunchForm::plan() const {
  const auto& plans = workspace_.document.project().plans;
  const int index = plans_->currentIndex();
  return index < 0 || static_cast<std::size_t>(index) >= plans.size() ? nullptr : &plans[static_cast<std::size_t>(index)].plan;
}

QString LaunchForm::planName() const { return plans_->currentText(); }
QString LaunchForm::command() const { return command_->toPlainText(); }

Run LaunchForm::run() const {
  Run run = more_;
  run.steps = steps_->value();
  run.learningRate.peak = QLocale::c().toDouble(learningRate_->text());
  run.seed = static_cast<std::uint64_t>(seed_->value());
  run.checkpoint.every = checkpointEvery_->value();
  run.train.clear();
  if (!data_->text().isEmpty()) run.train = {data_->text().toStdString()};
  return run;
}

QString LaunchForm::missing() const {
  if (plan() == nullptr) return tr("Find a plan first.");
  if (!verdict_) return tr("Looking at the plan …");
  if (!verdict_->objections.empty()) return objectionText(verdict_->objections);
  if (data_->text().isEmpty()) return tr("Name the text to train on.");
  if (!resume_->text().trimmed().isEmpty() && !resume_->text().trimmed().startsWith(QLatin1Char('/'))) return tr("Name the checkpoint by its whole path, from /.");
  if (!learningRate_->hasAcceptableInput()) return tr("The learning rate must be a number above 0 and at most 10, such as 3e-4.");
  return {};
}

std::optional<LaunchRequest> LaunchForm::request() const {
  if (!missing().isEmpty()) return std::nullopt;
  LaunchRequest request;
  request.plan = *plan();
  request.run = run();
  request.local = local_->isChecked();
  request.resume = resume_->text().trimmed().toStdString();
  request.programs = programs_;
  return request;
}

void LaunchForm::fillPlans() {
  const auto& plans = workspace_.document.project().plans;
  const QString newest = plans.empty() ? QString() : QString::fromStdString(plans.back().name);
  const bool isNew = plans_->findText(newest) < 0;  // whoever has just found a plan wants that one
  const QString before = plans_->currentText();
  {
    const QSignalBlocker blocker(plans_);
    plans_->clear();
    for (const NamedPlan& named : plans) plans_->addItem(QString::fromStdString(named.name));
    const int same = isNew ? -1 : plans_->findText(before);
    plans_->setCurrentIndex(same >= 0 ? same : plans_->count() - 1);
  }
  choosePlan();
}

void LaunchForm::choosePlan() {
  if (const Plan* chosen = plan()) {
    const auto& nodes = chosen->cluster.nodes;
    local_->setChecked(std::ranges::all_of(nodes, [](const auto& node) { return node.ssh.host.empty(); }));
  }
  judge();
}

void LaunchForm::judge() {
  verdict_.reset();
  background_.forget();
  const Plan* chosen = plan();
  if (chosen != nullptr && isVisible()) {
    background_.run(
        [project = workspace_.document.snapshot(), chosen, name = planName(), folder = planFolder(), programs = programs_] {
          return Verdict{launchObjections(*chosen, programs), isStale(*chosen, *project), writePlan(*chosen, name, folder)};
        },
        [this](Verdict verdict) {
          if (!verdict.file) workspace_.messages.showError(verdict.file.error());
          verdict_ = std::move(verdict);
          refresh();
        });
  }
  refresh();
}

void LaunchForm::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!verdict_) judge();
}

void LaunchForm::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  launch_->setIcon(icon("launch", palette()));
  refresh();
}

QString LaunchForm::planSummary() const {
  const Plan* chosen = plan();
  if (chosen == nullptr) return {};
  std::size_t stages = 0;
  for (const Pipeline& pipeline : chosen->pipelines) stages += pipeline.stages.size();
  QStringList parts{
      QString::fromStdString(chosen->model.name), counted(chosen->usedDevices().size(), tr("device"), tr("devices")),
      counted(chosen->pipelines.size(), tr("pipeline"), tr("pipelines")), counted(stages, tr("stage"), tr("stages"))};
  if (chosen->predicted) parts << tr("predicted %1 a step").arg(timeText(chosen->predicted->iteration));
  if (verdict_ && verdict_->isStale) parts << tr("⚠ cluster, model or training were changed since it was found");
  return parts.join(QStringLiteral(" · "));
}

void LaunchForm::refresh() {
  const QString lack = missing();
  const bool hasPlan = plan() != nullptr;
  const bool objects = verdict_ && !verdict_->objections.empty();
  data_->setToolTip(data_->text());
  const QString changed = settingsSummary(run());
  settings_->setText(changed.isEmpty() ? tr("as usual") : changed);
  settings_->setToolTip(changed);
  summary_->setText(planSummary());
  summary_->setVisible(hasPlan);
  for (QWidget* field :
       {static_cast<QWidget*>(plans_), static_cast<QWidget*>(data_->parentWidget()), static_cast<QWidget*>(steps_),
        static_cast<QWidget*>(learningRate_), static_cast<QWidget*>(seed_), static_cast<QWidget*>(checkpointEvery_),
        static_cast<QWidget*>(resume_), static_cast<QWidget*>(changeSettings_), static_cast<QWidget*>(local_)}) {
    field->setEnabled(hasPlan);
  }
  command_->setVisible(hasPlan && !objects);
  copy_->setVisible(hasPlan && !objects);
  Run shown = run();
  if (shown.train.empty()) shown.train = {"TEXT"};
  command_->setPlainText(
      hasPlan ? launchCommand(verdict_ && verdict_->file ? *verdict_->file : std::filesystem::path("plan.json"), shown,
                              resume_->text().trimmed(), local_->isChecked())
              : QString());
  const QString text = !lack.isEmpty() ? lack : busy_;
  hint_->setText(text);
  hint_->setVisible(!text.isEmpty());
  if (hint_->width() > 0) hint_->setMinimumHeight(hint_->heightForWidth(hint_->width()));  // the form gives it one line
  QPalette tint;
  tint.setColor(QPalette::WindowText,
                objects ? colours(palette()).error : palette().color(QPalette::PlaceholderText));
  hint_->setPalette(tint);
  check_->setEnabled(lack.isEmpty() && busy_.isEmpty());
  launch_->setEnabled(lack.isEmpty() && busy_.isEmpty());
  copy_->setEnabled(lack.isEmpty());
}

}  // namespace evenkeel::gui
