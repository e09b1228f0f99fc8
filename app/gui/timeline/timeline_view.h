// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QHash>
#include <QImage>
#include <QStaticText>
#include <memory>
#include <optional>
#include <vector>

#include "app/gui/timeline/slice_model.h"

class QPainter;

namespace evenkeel::gui {

/// Who did what when: a row a stage, time to the right, all on one axis. Several timelines stand below each other, each under
/// its heading. Ctrl+wheel and W/S zoom at the cursor, A/D and dragging pan, F shows everything; a tool tip says what is under
/// the cursor. Paints itself: half a million slices in one frame.
class TimelineView final : public QAbstractScrollArea {
  Q_OBJECT

 public:
  struct Band {
    QString heading;  // empty: none
    std::shared_ptr<const SliceModel> slices;  // never null
  };

  explicit TimelineView(QWidget* parent = nullptr);

  /// What is shown of the axis stays, unless all of it was shown.
  void setBands(std::vector<Band> bands);
  void setTimeline(const Timeline& timeline);
  /// Marks the row of a stage of the first band.
  void setSelectedStage(std::optional<std::pair<int, int>> pipelineAndStage);
  /// Text in the middle while there is nothing to show.
  void setPlaceholder(const QString& text);

  [[nodiscard]] const TimeAxis& axis() const { return axis_; }
  void fit();
  /// What the tool tip at a place of the viewport says: "micro-batch 6 backward, 240-260 ms"; empty where there is nothing.
  [[nodiscard]] QString textAt(QPoint position) const;

 signals:
  void stageClicked(int band, int pipeline, int stage);

 protected:
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  void changeEvent(QEvent* event) override;
  [[nodiscard]] QSize sizeHint() const override;

 private:
  /// One line of the picture, in content coordinates; lane -1: the heading of the band.
  struct Row {
    int top = 0, height = 0, band = 0, lane = -1;
  };

  void layOut();
  void updateBars();
  void zoom(double factor);
  [[nodiscard]] double cursorX() const;
  [[nodiscard]] const Row* rowAt(int viewportY) const;
  void paintRow(QPainter& painter, const Row& row, int top);
  void paintSlices(QPainter& painter, const SliceModel& slices, std::size_t lane, SliceModel::Track track, const QRectF& area);
  void paintRuler(QPainter& painter);
  /// Laid out once for each number: of a frame with a number in each slice, laying out takes the most time.
  [[nodiscard]] const QStaticText& numberText(std::int64_t microBatch);

  std::vector<Band> bands_;
  std::vector<Row> rows_;
  std::vector<PaintedSlice> painted_;  // reused from row to row, as is this:
  QImage line_;
  QHash<std::int64_t, QStaticText> numbers_;
  TimeAxis axis_;
  QString placeholder_;
  std::optional<std::pair<int, int>> selected_;
  int labelWidth_ = 0, rulerHeight_ = 0;
  std::optional<QPoint> dragFrom_;
  bool isDragging_ = false, isUpdatingBars_ = false;
};

/// The name of a row in few letters: "P0 S1".
[[nodiscard]] QString shortName(const Lane& lane);

}  // namespace evenkeel::gui
