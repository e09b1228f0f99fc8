// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "core/plan/run.h"

class QComboBox;
class QDoubleSpinBox;
class QLineEdit;
class QSpinBox;

namespace evenkeel::gui {

/// The settings of a run that most people leave as they are: schedule, optimizer, regularisation, evaluation, what happens at its
/// end. Those of the form beside it (data, steps, learning rate, seed, checkpoints) pass through unchanged.
class SettingsDialog final : public QDialog {
  Q_OBJECT

 public:
  explicit SettingsDialog(const Run& run, QWidget* parent = nullptr);
  [[nodiscard]] Run run() const;

 private:
  QWidget* makeValidationRow();
  void fill(const Run& run);

  const Run given_;
  QComboBox* schedule_;
  QSpinBox* warmup_;
  QDoubleSpinBox* finalRate_;
  QDoubleSpinBox* weightDecay_;
  QDoubleSpinBox* beta1_;
  QDoubleSpinBox* beta2_;
  QDoubleSpinBox* clip_;
  QDoubleSpinBox* dropout_;
  QLineEdit* validation_;
  QSpinBox* evaluateEvery_;
  QSpinBox* keep_;
  QLineEdit* endCommand_;
};

/// What of it differs from the defaults: "clip 1 · dropout 0.1"; empty: nothing.
[[nodiscard]] QString settingsSummary(const Run& run);

}  // namespace evenkeel::gui
