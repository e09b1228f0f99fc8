// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/key_figures.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <vector>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr std::size_t kWindow = 20;
constexpr double kMuchSlower = 0.2;  // above the prediction: worth a look

template <class F>
double medianOf(const std::deque<StepRecord>& steps, F&& value) {
  std::vector<double> values;
  for (const StepRecord& step : steps) values.push_back(value(step));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

QString lossText(double loss) { return std::isfinite(loss) ? QString::number(loss, 'f', 4) : QString::number(loss); }

}  // namespace

QString differenceText(double measured, double predicted) {
  const double percent = 100 * (measured / predicted - 1);
  const QString sign = std::lround(percent) < 0 ? QStringLiteral("−") : QStringLiteral("+");
  return sign + QString::number(std::abs(std::lround(percent))) + QStringLiteral("\u2009%");
}

KeyFigures::KeyFigures(QWidget* parent) : QWidget(parent) {
  const std::array<std::pair<QString, const char*>, FigureCount> titles = {{{tr("Step"), "step"},
                                                                            {tr("Loss"), "loss"},
                                                                            {tr("Iteration"), "iteration"},
                                                                            {tr("Tokens per second"), "throughput"},
                                                                            {tr("Bubble"), "bubble"},
                                                                            {tr("Peak memory"), "memory"}}};
  const QStringList tips = {tr("Steps that every rank has done"),
                            tr("Mean loss of the last step's tokens"),
                            tr("Slowest rank's time of one step: median of the last 20"),
                            tr("Tokens of a step over the median iteration"),
                            tr("Waiting for other stages, of the slowest rank's iteration: median of the last 20"),
                            tr("Of the fullest rank")};
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(18);
  for (std::size_t i = 0; i < FigureCount; ++i) {
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    auto* title = new QLabel(titles[i].first);
    title->setForegroundRole(QPalette::PlaceholderText);
    values_[i] = new QLabel;
    values_[i]->setObjectName(QStringLiteral("figure-") + QString::fromLatin1(titles[i].second));
    values_[i]->setAccessibleName(titles[i].first);
    QFont font = values_[i]->font();
    font.setPointSizeF(font.pointSizeF() * 1.4);
    values_[i]->setFont(font);
    notes_[i] = new QLabel;
    notes_[i]->setObjectName(QStringLiteral("note-") + QString::fromLatin1(titles[i].second));
    for (QLabel* label : {title, values_[i], notes_[i]}) {
      label->setToolTip(tips[static_cast<qsizetype>(i)]);
      column->addWidget(label);
    }
    layout->addLayout(column, 1);
  }
  clear();
}

void KeyFigures::set(Figure figure, const QString& value, const QString& note, bool isWarning) {
  values_[figure]->setText(value);
  notes_[figure]->setText(isWarning ? QStringLiteral("⚠ ") + note : note);
  QPalette tint;
  tint.setColor(QPalette::WindowText, isWarning ? colours(palette()).warning : palette().color(QPalette::PlaceholderText));
  notes_[figure]->setPalette(tint);
}

void KeyFigures::clear() {
  last_.clear();
  for (int i = 0; i < FigureCount; ++i) set(static_cast<Figure>(i), QStringLiteral("–"), {});
}

void KeyFigures::take(const StepRecord& step) {
  last_.push_back(step);
  if (last_.size() > kWindow) last_.pop_front();
}

void KeyFigures::show(std::int64_t totalSteps, std::optional<double> predictedIterationMs) {
  const auto predicted = predictedIterationMs.value_or(0);
  if (last_.empty()) {
    set(Step, totalSteps > 0 ? QStringLiteral("0") : QStringLiteral("–"),
        totalSteps > 0 ? tr("of %1").arg(exactText(totalSteps)) : QString());
    set(Iteration, QStringLiteral("–"),
        predicted > 0 ? tr("predicted %1").arg(timeText(fromMilliseconds(predicted))) : QString());
    return;
  }
  const StepRecord& now = last_.back();
  const bool isBroken = !std::isfinite(now.loss);
  set(Step, exactText(now.step), totalSteps > 0 ? tr("of %1").arg(exactText(totalSteps)) : QString());
  set(Loss, lossText(now.loss), isBroken ? tr("not finite") : tr("gradient norm %1").arg(QString::number(now.gradNorm, 'g', 3)),
      isBroken);
  const double iteration = medianOf(last_, [](const StepRecord& step) { return step.iterationMs; });
  const auto rate = [&](double ms) { return ms > 0 ? static_cast<double>(now.tokens) / (ms / 1e3) : 0; };
  if (predicted > 0 && iteration > 0) {
    const bool isSlow = iteration > predicted * (1 + kMuchSlower);
    set(Iteration, timeText(fromMilliseconds(iteration)),
        tr("predicted %1, %2").arg(timeText(fromMilliseconds(predicted)), differenceText(iteration, predicted)), isSlow);
    set(Throughput, countText(rate(iteration)),
        tr("predicted %1, %2").arg(countText(rate(predicted)), differenceText(rate(iteration), rate(predicted))));
  } else {
    set(Iteration, timeText(fromMilliseconds(iteration)), tr("no prediction"));
    set(Throughput, countText(rate(iteration)), {});
  }
  const double bubble =
      medianOf(last_, [](const StepRecord& step) { return step.iterationMs > 0 ? step.bubbleMs / step.iterationMs : 0; });
  set(Bubble, percentText(bubble), {});
  set(Memory, bytesText(Bytes{now.peakBytes}), tr("fullest rank"));
}

}  // namespace evenkeel::gui
