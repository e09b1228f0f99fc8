// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/gui/model/layer_table.h"
#include "app/gui/window/page.h"

class QComboBox;
class QLabel;
class QListWidget;
class QSpinBox;

namespace evenkeel::gui {

/// What the largest device of a cluster makes of a model, in one sentence: does it fit alone, and the sum behind it.
[[nodiscard]] QString fitLine(const Project& project);
/// How much finer data is than layers as a measure of balance: one layer of a stage against one sample of the batch.
[[nodiscard]] QString granularityLine(const Project& project);

/// Presets and files at the left, the layer table in the middle, training options at the right, the verdict below.
class ModelPage final : public Page {
  Q_OBJECT

 public:
  explicit ModelPage(Workspace& workspace, QWidget* parent = nullptr);

 private:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  QWidget* makePresets();
  QWidget* makeTraining();
  void chooseFile();
  void loadFile(const QString& path);
  void refresh();

  QListWidget* presets_;
  LayerTable table_;
  QLabel* title_;
  QLabel* fit_;
  QLabel* granularity_;
  QSpinBox* batch_;
  QSpinBox* sequence_;
  QComboBox* precision_;
  QComboBox* zero_;
  QComboBox* sync_;
  QComboBox* attention_;
  bool isRefreshing_ = false;
};

}  // namespace evenkeel::gui
