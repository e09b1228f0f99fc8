// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

#include "app/gui/plot/decimation.h"
#include "app/gui/plot/smoothing.h"

class QCPGraph;
class QCPItemLine;
class QCPItemStraightLine;
class QCPItemText;
class QCustomPlot;
class QLabel;

namespace evenkeel::gui {

/// How a curve and its numbers are called.
struct CurveTitles {
  QString x, y;                              // "step", "loss"
  std::function<QString(double)> valueText;  // of one y, at the crosshair and the ticks; absent: significant digits
};

/// A live curve: every value faint, the smoothed curve strong, values that cannot be drawn as marks at the lower edge and as a
/// count. All data is kept; what is drawn is the envelope of each pixel column. Wheel zooms and dragging pans in x, y follows
/// what is visible; a double click shows everything and follows the end again. The one user of QCustomPlot.
class CurvePlot final : public QWidget {
  Q_OBJECT

 public:
  explicit CurvePlot(CurveTitles titles, QWidget* parent = nullptr);
  ~CurvePlot() override;

  /// x must be above the last one. O(1); the picture follows within 1/30 s.
  void append(double x, double y);
  /// A point of the other curve, whose values are few, as of a validation: a line with a mark at each. x must be above its last one.
  void appendOther(double x, double y);
  void clear();
  /// weight in [0, 1), see Smoothing. O(n).
  void setSmoothing(double weight);
  void setLogAxis(bool isLog);
  /// A dashed horizontal line with its name, as for a prediction; nothing takes it away.
  void setReference(std::optional<double> y, const QString& name = {});
  /// Shows all points and follows new ones.
  void showAll();
  void setVisibleRange(double first, double last);

  [[nodiscard]] const std::vector<CurvePoint>& points() const { return raw_.points(); }
  [[nodiscard]] const std::vector<CurvePoint>& otherPoints() const { return other_.points(); }
  [[nodiscard]] std::size_t notFiniteCount() const { return notFinite_.size(); }
  /// Finite values that a log axis cannot show (<= 0); 0 with a linear axis.
  [[nodiscard]] std::size_t hiddenByLogCount() const { return isLog_ ? notPositive_.size() : 0; }
  [[nodiscard]] bool isFollowing() const { return isFollowing_; }
  /// What the last picture was drawn from.
  [[nodiscard]] const std::vector<CurvePoint>& drawn() const { return drawn_; }
  /// The text at the crosshair, empty without one.
  [[nodiscard]] QString crosshairText() const;
  /// Draws now what is due; tests and pictures need not wait for it.
  void draw();

 private:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void makeItems();
  void applyColours();
  void schedule();
  void prepareFrame();
  void drawMarks(double first, double last, int columns);
  void fitValues();
  void chooseTicks(double least, double most);
  void showCounts();
  void moveCrosshair(double pixel);
  void hideCrosshair();

  const CurveTitles titles_;
  CurveSeries raw_, smooth_, other_;
  std::vector<CurvePoint> drawn_, otherDrawn_;
  std::vector<double> notFinite_, notPositive_;  // x of values that are not finite; of finite ones that are not above 0
  Smoothing smoothing_;
  bool isLog_ = false, isFollowing_ = true, isPreparing_ = false;
  std::optional<double> reference_;
  QTimer frame_;
  QElapsedTimer sinceFrame_;

  QCustomPlot* plot_;
  QLabel* counts_;
  QCPGraph* rawGraph_ = nullptr;
  QCPGraph* smoothGraph_ = nullptr;
  QCPGraph* otherGraph_ = nullptr;
  QCPGraph* marks_ = nullptr;
  QCPItemLine* crosshair_ = nullptr;
  QCPItemText* crosshairText_ = nullptr;
  QCPItemStraightLine* referenceLine_ = nullptr;
  QCPItemText* referenceText_ = nullptr;
  QCPItemText* emptyText_ = nullptr;
};

}  // namespace evenkeel::gui
