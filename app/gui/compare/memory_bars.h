// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "app/gui/plan/plan_facts.h"

namespace evenkeel::gui {

/// Peak memory of several plans: a group a plan, a bar a stage (its fullest device), in parts of what that device may use. The
/// limit is a dashed line.
class MemoryBars final : public QWidget {
  Q_OBJECT

 public:
  struct Group {
    QString heading;
    PlanFacts facts;
  };
  explicit MemoryBars(QWidget* parent = nullptr);
  void setGroups(std::vector<Group> groups);
  /// The stage under a place, in words; empty: none.
  [[nodiscard]] QString textAt(QPoint position) const;
  [[nodiscard]] QSize sizeHint() const override { return {360, 180}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {200, 110}; }

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Bar {
    QRectF rect;  // as high as the device may hold
    const StageFacts* stage;
  };
  [[nodiscard]] QRectF area() const;
  [[nodiscard]] std::vector<Bar> bars() const;
  struct Widths {
    double bar, leastGroup;
  };
  [[nodiscard]] Widths widths() const;
  [[nodiscard]] QRectF groupArea(std::size_t group) const;
  std::vector<Group> groups_;
};

}  // namespace evenkeel::gui
