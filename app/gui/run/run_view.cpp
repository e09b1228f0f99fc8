// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/run_view.h"

#include <QCheckBox>
#include <QDateTime>
#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QSplitter>
#include <QVBoxLayout>
#include <cmath>

#include "app/gui/plot/curve_plot.h"
#include "app/gui/run/key_figures.h"
#include "app/gui/run/outcome_view.h"
#include "app/gui/run/preflight_view.h"
#include "app/gui/run/run_list.h"
#include "app/gui/run/run_log.h"
#include "app/gui/theme/theme.h"
#include "app/gui/widgets/heading.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kSliderSteps = 100;
constexpr int kUsualSmoothing = 13;  // a weight of 0.6
constexpr int kBarHeight = 24;       // of the line above each curve

/// The slider's place to a weight: equal steps feel equal, and the last ones average over hundreds of steps.
double weightOf(int place) { return place == 0 ? 0 : 1 - std::pow(10.0, -3.0 * place / kSliderSteps); }

/// "0:07", "1:12:40"
QString durationText(double seconds) {
  const auto whole = static_cast<qint64>(std::max(0.0, seconds));
  const QString minutes = QString::number(whole / 60 % 60), rest = QStringLiteral("%1").arg(whole % 60, 2, 10, QLatin1Char('0'));
  return whole < 3600 ? minutes + QLatin1Char(':') + rest
                      : QStringLiteral("%1:%2:%3").arg(whole / 3600).arg(minutes.rightJustified(2, QLatin1Char('0')), rest);
}

QWidget* column(QLayout* top, QWidget* below) {
  auto* box = new QWidget;
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(top);
  layout->addWidget(below, 1);
  return box;
}

}  // namespace

RunView::RunView(QWidget* parent)
    : QWidget(parent),
      name_(new QLabel),
      stateLabel_(new QLabel),
      stop_(new QPushButton(tr("Stop…"))),
      detach_(new QPushButton(tr("Detach"))),
      preflight_(new PreflightView),
      outcome_(new OutcomeView),
      figures_(new KeyFigures),
      loss_(new CurvePlot({.x = tr("step"), .y = tr("loss"), .valueText = {}})),
      validation_(new QLabel),
      throughput_(
          new CurvePlot({.x = tr("step"), .y = tr("tokens/s"), .valueText = [](double value) { return countText(value); }})),
      body_(new QWidget),
      log_(new RunLog) {
  loss_->setObjectName(QStringLiteral("lossCurve"));
  throughput_->setObjectName(QStringLiteral("throughputCurve"));
  auto* curves = new QSplitter(Qt::Horizontal);
  curves->addWidget(makeLoss());
  curves->addWidget(makeThroughput());
  curves->setStretchFactor(0, 3);
  curves->setStretchFactor(1, 2);
  curves->setSizes({520, 350});
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(curves);
  split->addWidget(log_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({330, 200});
  split->setChildrenCollapsible(false);
  curves->setChildrenCollapsible(false);
  auto* body = new QVBoxLayout(body_);
  body->setContentsMargins(0, 0, 0, 0);
  body->setSpacing(12);
  body->addWidget(figures_);
  body->addWidget(split, 1);

  connect(outcome_, &OutcomeView::resumeRequested, this, &RunView::resumeRequested);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(8);
  layout->addWidget(makeHeader());
  layout->addWidget(outcome_);
  layout->addWidget(preflight_);
  layout->addWidget(body_, 1000);
  layout->addStretch(1);  // all the room while the body is hidden
}

QWidget* RunView::makeHeader() {
  auto* header = new QWidget;
  name_->setObjectName(QStringLiteral("runTitle"));
  name_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont font = name_->font();
  font.setPointSizeF(font.pointSizeF() * 1.3);
  name_->setFont(font);
  stateLabel_->setObjectName(QStringLiteral("runState"));
  stop_->setObjectName(QStringLiteral("runStop"));
  stop_->setIcon(icon("stop", palette()));
  stop_->setToolTip(tr("End the job on all nodes; asks first"));
  detach_->setObjectName(QStringLiteral("runDetach"));
  detach_->setToolTip(tr("Stop following; the job goes on. Closing the window does the same."));
  auto* layout = new QHBoxLayout(header);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(name_);
  layout->addSpacing(8);
  layout->addWidget(stateLabel_);
  layout->addStretch();
  layout->addWidget(stop_);
  layout->addWidget(detach_);
  connect(stop_, &QPushButton::clicked, this, &RunView::stopRequested);
  connect(detach_, &QPushButton::clicked, this, &RunView::detachRequested);
  return header;
}

QWidget* RunView::makeLoss() {
  auto* smoothing = new QSlider(Qt::Horizontal);
  smoothing->setObjectName(QStringLiteral("smoothing"));
  smoothing->setAccessibleName(tr("Smoothing"));
  smoothing->setRange(0, kSliderSteps);
  smoothing->setMaximumWidth(120);
  auto* weight = new QLabel;
  auto* log = new QCheckBox(tr("Log axis"));
  log->setObjectName(QStringLiteral("logAxis"));
  const auto apply = [this, weight, smoothing] {
    const double w = weightOf(smoothing->value());
    weight->setText(w == 0 ? tr("off") : QString::number(w, 'f', 3));
    smoothing->setToolTip(tr("Weight of the past: %1").arg(w));
    loss_->setSmoothing(w);
    throughput_->setSmoothing(w);
  };
  connect(smoothing, &QSlider::valueChanged, this, apply);
  smoothing->setValue(kUsualSmoothing);
  connect(log, &QCheckBox::toggled, this, [this](bool isLog) { loss_->setLogAxis(isLog); });
  auto* bar = new QHBoxLayout;
  bar->addStrut(kBarHeight);
  bar->addWidget(heading(tr("Loss")));
  validation_->setObjectName(QStringLiteral("validationLoss"));
  validation_->hide();
  bar->addSpacing(8);
  bar->addWidget(validation_);
  bar->addStretch();
  bar->addWidget(new QLabel(tr("Smoothing")));
  bar->addWidget(smoothing);
  weight->setMinimumWidth(weight->fontMetrics().horizontalAdvance(QStringLiteral("0.000")));
  bar->addWidget(weight);
  bar->addWidget(log);
  return column(bar, loss_);
}

QWidget* RunView::makeThroughput() {
  auto* bar = new QHBoxLayout;
  bar->addStrut(kBarHeight);
  bar->addWidget(heading(tr("Throughput, tokens/s")));
  bar->addStretch();
  return column(bar, throughput_);
}

void RunView::begin(const QString& title) {
  title_ = title;
  isPredicted_ = false;
  started_ = 0;
  loss_->clear();
  validation_->hide();
  throughput_->clear();
  throughput_->setReference({});
  log_->clear();
  figures_->clear();
  take({});
}

void RunView::predict(std::int64_t tokens) {
  if (isPredicted_ || !state_.predictedIterationMs || *state_.predictedIterationMs <= 0) return;
  isPredicted_ = true;
  const double rate = static_cast<double>(tokens) / (*state_.predictedIterationMs / 1e3);
  throughput_->setReference(rate, tr("predicted %1").arg(countText(rate)));
}

void RunView::take(const SessionUpdate& update) {
  state_ = update.state;
  for (const StepRecord& step : update.steps) {
    const auto x = static_cast<double>(step.step);
    loss_->append(x, step.loss);
    throughput_->append(x, step.iterationMs > 0 ? static_cast<double>(step.tokens) / (step.iterationMs / 1e3) : std::nan(""));
    figures_->take(step);
    predict(step.tokens);
  }
  for (const EvaluatedStep& evaluated : update.evaluations) {
    loss_->appendOther(static_cast<double>(evaluated.step), evaluated.loss);
    validation_->setText(tr("<span style='color:%1'>◆</span> validation %2 at step %3")
                             .arg(colours(palette()).optimizer.name(), QString::number(evaluated.loss, 'f', 4), exactText(evaluated.step)));
    validation_->show();
  }
  log_->append(update.logs);
  showState();
}

void RunView::showState() {
  figures_->show(state_.totalSteps, state_.predictedIterationMs);
  preflight_->show(state_);
  outcome_->show(state_);
  const bool isOnlyPreflight =
      state_.run.empty() && (state_.phase == SessionPhase::Checking || state_.phase == SessionPhase::Over);
  body_->setVisible(!isOnlyPreflight);
  showHeader(state_);
}

void RunView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  stop_->setIcon(icon("stop", palette()));
  QMetaObject::invokeMethod(this, &RunView::showState, Qt::QueuedConnection);  // once the children have the palette too
}

void RunView::showHeader(const SessionState& state) {
  name_->setText(state.run.empty() ? title_
                                   : tr("Run %1").arg(QString::fromStdString(state.run)) +
                                         (title_.isEmpty() ? QString() : QStringLiteral(" · ") + title_));
  QString text;
  const Colours& c = colours(palette());
  QColor colour = c.subtle;
  switch (state.phase) {
    case SessionPhase::Idle: break;
    case SessionPhase::Checking: text = tr("… checking"); break;
    case SessionPhase::Starting: text = tr("… starting"); break;
    case SessionPhase::Following:
    case SessionPhase::Detached:
    case SessionPhase::Over:
      if (state.isJobKnown) {
        text = stateText(state.job);
        colour = stateColour(state.job, palette());
      }
      if (state.run.empty() && state.error) {
        text = tr("✕ not started");
        colour = c.error;
      }
  }
  if (state.phase == SessionPhase::Following && state.job == JobState::Running && started_ > 0) {
    text += QStringLiteral(" · ") + durationText(static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1e3 - started_);
  }
  if (state.phase == SessionPhase::Following && !state.lost.empty()) {
    text = tr("⚠ connection lost");
    colour = c.warning;
  }
  stateLabel_->setText(text);
  QPalette tint;
  tint.setColor(QPalette::WindowText, colour);
  stateLabel_->setPalette(tint);
  const bool isStarting = state.phase == SessionPhase::Starting;
  const bool mayRun = state.phase == SessionPhase::Following || (state.phase == SessionPhase::Detached && !hasEnded(state.job)) ||
                      (state.stopReport && !state.stopReport->complete()) || state.stopError;
  stop_->setVisible(isStarting || (mayRun && !state.run.empty()));
  stop_->setText(isStarting ? tr("Give up the start") : tr("Stop…"));
  stop_->setEnabled(!state.isStopping);
  detach_->setVisible(state.phase == SessionPhase::Following && !hasEnded(state.job));
}

}  // namespace evenkeel::gui
