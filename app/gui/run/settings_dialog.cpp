// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/settings_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/gui/widgets/heading.h"

namespace evenkeel::gui {
namespace {

using Schedule = Run::LearningRate::Schedule;
constexpr int kMostSteps = 1'000'000'000;

template <class W>
W* named(W* widget, const char* name, const QString& tip = {}) {
  widget->setObjectName(QLatin1String(name));
  widget->setToolTip(tip);
  return widget;
}

/// Without the zeros that fill up the decimals.
class TrimmedBox final : public QDoubleSpinBox {
  QString textFromValue(double value) const override { return locale().toString(value, 'g', 6); }
};

QDoubleSpinBox* numberBox(const char* name, double most, int decimals, double step, const QString& tip) {
  auto* box = named(new TrimmedBox, name, tip);
  box->setRange(0, most);
  box->setDecimals(decimals);
  box->setSingleStep(step);
  return box;
}

QString number(double value) { return QString::number(value, 'g', 6); }

}  // namespace

SettingsDialog::SettingsDialog(const Run& run, QWidget* parent)
    : QDialog(parent),
      given_(run),
      schedule_(named(new QComboBox, "settingsSchedule", tr("What the learning rate does after its peak"))),
      warmup_(named(new QSpinBox, "settingsWarmup", tr("Steps until the peak"))),
      finalRate_(numberBox("settingsFinalRate", 1, 4, 0.05, tr("Fraction of the peak at the last step"))),
      weightDecay_(numberBox("settingsWeightDecay", 10, 4, 0.01, tr("Of tensors with two dimensions"))),
      beta1_(numberBox("settingsBeta1", 0.999999, 6, 0.01, tr("AdamW, first moment"))),
      beta2_(numberBox("settingsBeta2", 0.999999, 6, 0.01, tr("AdamW, second moment"))),
      clip_(numberBox("settingsClip", 1e9, 4, 0.5, tr("Longest gradient of the whole model, whatever the plan"))),
      dropout_(numberBox(
          "settingsDropout", 0.99, 3, 0.05,
          tr("Probability, after attention's softmax and before each residual addition; the same masks under every plan"))),
      validation_(named(new QLineEdit, "settingsValidation", tr("Text that is not trained on"))),
      evaluateEvery_(
          named(new QSpinBox, "settingsEvaluateEvery", tr("Steps between evaluations; the last step is evaluated too"))),
      keep_(named(new QSpinBox, "settingsKeep", tr("The newest checkpoints that stay"))),
      endCommand_(named(new QLineEdit, "settingsEndCommand",
                        tr("A shell line that runs on this machine when the run has ended, with EVENKEEL_RUN, EVENKEEL_STATE and "
                           "EVENKEEL_CAUSE in its environment"))) {
  setObjectName(QStringLiteral("settingsDialog"));
  setWindowTitle(tr("Settings of the run"));
  for (const QString& word : {tr("Cosine"), tr("Linear"), tr("Constant")}) schedule_->addItem(word);
  warmup_->setRange(0, kMostSteps);
  evaluateEvery_->setRange(0, kMostSteps);
  evaluateEvery_->setSpecialValueText(tr("never"));
  evaluateEvery_->setPrefix(tr("every "));
  evaluateEvery_->setSuffix(tr(" steps"));
  keep_->setRange(1, 1'000'000);
  clip_->setSpecialValueText(tr("as long as it is"));
  validation_->setPlaceholderText(tr("none"));
  endCommand_->setPlaceholderText(tr("none"));

  auto* form = new QFormLayout;
  form->setVerticalSpacing(6);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(formHeading(tr("Learning rate")));
  form->addRow(tr("Schedule"), schedule_);
  form->addRow(tr("Warm-up steps"), warmup_);
  form->addRow(tr("Last, of the peak"), finalRate_);
  form->addRow(formHeading(tr("Optimizer")));
  form->addRow(tr("Weight decay"), weightDecay_);
  form->addRow(tr("Beta 1"), beta1_);
  form->addRow(tr("Beta 2"), beta2_);
  form->addRow(tr("Clip gradients at"), clip_);
  form->addRow(tr("Dropout"), dropout_);
  form->addRow(formHeading(tr("Evaluation and end")));
  form->addRow(tr("Validation text"), makeValidationRow());
  form->addRow(tr("Evaluate"), evaluateEvery_);
  form->addRow(tr("Checkpoints kept"), keep_);
  form->addRow(tr("Command at the end"), endCommand_);

  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel | QDialogButtonBox::RestoreDefaults);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(buttons->button(QDialogButtonBox::RestoreDefaults), &QPushButton::clicked, this, [this] { fill(Run{}); });
  connect(schedule_, &QComboBox::currentIndexChanged, this,
          [this](int index) { finalRate_->setEnabled(index != static_cast<int>(Schedule::Constant)); });
  connect(validation_, &QLineEdit::textChanged, this, [this](const QString& text) {
    evaluateEvery_->setEnabled(!text.isEmpty());
    if (!text.isEmpty() && evaluateEvery_->value() == 0) evaluateEvery_->setValue(100);
  });
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(18, 10, 18, 14);
  column->setSpacing(12);
  column->addLayout(form);
  column->addWidget(buttons);
  fill(run);
}

QWidget* SettingsDialog::makeValidationRow() {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(validation_, 1);
  auto* browse = named(new QToolButton, "settingsBrowse", tr("Choose a text file"));
  browse->setText(QStringLiteral("…"));
  browse->setAccessibleName(browse->toolTip());
  connect(browse, &QToolButton::clicked, this, [this] {
    const QString file = QFileDialog::getOpenFileName(this, tr("Text to evaluate on"), validation_->text());
    if (!file.isEmpty()) validation_->setText(file);
  });
  layout->addWidget(browse);
  return row;
}

void SettingsDialog::fill(const Run& run) {
  schedule_->setCurrentIndex(static_cast<int>(run.learningRate.schedule));
  warmup_->setValue(static_cast<int>(run.learningRate.warmupSteps));
  finalRate_->setValue(run.learningRate.final);
  finalRate_->setEnabled(run.learningRate.schedule != Schedule::Constant);
  weightDecay_->setValue(run.weightDecay);
  beta1_->setValue(run.beta1);
  beta2_->setValue(run.beta2);
  clip_->setValue(run.gradientClip);
  dropout_->setValue(run.dropout);
  evaluateEvery_->setValue(static_cast<int>(run.evaluation.every));
  validation_->setText(run.validation.empty() ? QString() : QString::fromStdString(run.validation.front()));
  evaluateEvery_->setEnabled(!validation_->text().isEmpty());
  keep_->setValue(run.checkpoint.keep);
  endCommand_->setText(QString::fromStdString(run.endCommand));
}

Run SettingsDialog::run() const {
  Run run = given_;
  run.learningRate.schedule = static_cast<Schedule>(schedule_->currentIndex());
  run.learningRate.warmupSteps = warmup_->value();
  run.learningRate.final = finalRate_->value();
  run.weightDecay = weightDecay_->value();
  run.beta1 = beta1_->value();
  run.beta2 = beta2_->value();
  run.gradientClip = clip_->value();
  run.dropout = dropout_->value();
  run.validation.clear();
  if (!validation_->text().isEmpty()) run.validation = {validation_->text().toStdString()};
  run.evaluation.every = run.validation.empty() ? 0 : evaluateEvery_->value();
  run.checkpoint.keep = keep_->value();
  run.endCommand = endCommand_->text().trimmed().toStdString();
  return run;
}

QString settingsSummary(const Run& run) {
  const Run usual;
  QStringList parts;
  if (run.learningRate.schedule != usual.learningRate.schedule)
    parts << (run.learningRate.schedule == Schedule::Linear ? SettingsDialog::tr("linear") : SettingsDialog::tr("constant"));
  if (run.learningRate.warmupSteps != usual.learningRate.warmupSteps)
    parts << SettingsDialog::tr("warm-up %1").arg(run.learningRate.warmupSteps);
  if (run.learningRate.final != usual.learningRate.final)
    parts << SettingsDialog::tr("down to %1").arg(number(run.learningRate.final));
  if (run.weightDecay != usual.weightDecay) parts << SettingsDialog::tr("decay %1").arg(number(run.weightDecay));
  if (run.beta1 != usual.beta1 || run.beta2 != usual.beta2)
    parts << SettingsDialog::tr("betas %1, %2").arg(number(run.beta1), number(run.beta2));
  if (run.gradientClip > 0) parts << SettingsDialog::tr("clip %1").arg(number(run.gradientClip));
  if (run.dropout > 0) parts << SettingsDialog::tr("dropout %1").arg(number(run.dropout));
  if (run.evaluation.every > 0) parts << SettingsDialog::tr("evaluated every %1 steps").arg(run.evaluation.every);
  if (run.checkpoint.keep != usual.checkpoint.keep) parts << SettingsDialog::tr("keep %1").arg(run.checkpoint.keep);
  if (!run.endCommand.empty()) parts << SettingsDialog::tr("a command at the end");
  return parts.join(QStringLiteral(" · "));
}

}  // namespace evenkeel::gui
