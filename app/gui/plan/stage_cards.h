// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "app/gui/plan/plan_facts.h"

namespace evenkeel::gui {

/// Where the card of a stage stands.
struct CardPlace {
  QRect rect;
  int row = 0;  // of PlanFacts::pipelines
  int stage = 0;
};

/// A row a pipeline below a line with its name; cards side by side, wide by their share of the units, never under `leastWidth`
/// (then the row is wider than `width`). No widget enters.
[[nodiscard]] std::vector<CardPlace> cardPlaces(const PlanFacts& facts, int width, int leastWidth, int headingHeight,
                                                int cardHeight);

/// The pipelines of a plan as rows of cards: border in the colour of the device type, devices, layers and degrees in words, a
/// memory bar, recomputed ops as cells.
class StageCards final : public QWidget {
  Q_OBJECT

 public:
  /// Compact cards, for several plans abreast, name layers and degrees only; the tool tip says the rest.
  enum class Detail { Full, Compact };
  explicit StageCards(Detail detail, QWidget* parent = nullptr);
  void setFacts(const PlanFacts& facts);
  void setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage);
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override;

 signals:
  void stageClicked(int pipeline, int stage);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  [[nodiscard]] std::vector<CardPlace> places() const;
  [[nodiscard]] const StageFacts* stageAt(QPoint position) const;
  void paintCard(QPainter& painter, const QRect& rect, const StageFacts& stage) const;
  [[nodiscard]] int leastWidth(int room) const;
  [[nodiscard]] int cardHeight() const;
  [[nodiscard]] int headingHeight() const;

  Detail detail_;
  PlanFacts facts_;
  std::optional<std::pair<int, int>> selected_;
};

}  // namespace evenkeel::gui
