// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <array>
#include <deque>
#include <optional>

#include "launcher/job/status.h"

class QLabel;

namespace evenkeel::gui {

/// The numbers of a run at a glance: step, loss, iteration against the prediction, tokens/s, bubble, memory. Times are medians of
/// the last 20 steps, so that one slow step does not make them jump.
class KeyFigures final : public QWidget {
  Q_OBJECT

 public:
  explicit KeyFigures(QWidget* parent = nullptr);
  void clear();
  void take(const StepRecord& step);
  /// totalSteps 0: not known.
  void show(std::int64_t totalSteps, std::optional<double> predictedIterationMs);

 private:
  enum Figure { Step, Loss, Iteration, Throughput, Bubble, Memory, FigureCount };
  void set(Figure figure, const QString& value, const QString& note, bool isWarning = false);

  std::deque<StepRecord> last_;
  std::array<QLabel*, FigureCount> values_{}, notes_{};
};

/// How far a measured time lies from the predicted one: "+7 %", "−3 %".
[[nodiscard]] QString differenceText(double measured, double predicted);

}  // namespace evenkeel::gui
