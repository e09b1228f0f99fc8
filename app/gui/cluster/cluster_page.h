// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>

#include "app/gui/window/page.h"

class QLabel;
class QPushButton;

namespace evenkeel::gui {

class Canvas;
class ClusterActions;

/// The cluster as a drawing, an outline and a matrix, with a palette to draw from. All of them edit one document.
class ClusterPage final : public Page {
  Q_OBJECT

 public:
  explicit ClusterPage(Workspace& workspace, QWidget* parent = nullptr);
  ~ClusterPage() override;
  [[nodiscard]] QWidget* inspector() override;
  [[nodiscard]] Canvas& canvas() { return *canvas_; }

 signals:
  /// Somebody wants to look for machines instead of drawing them.
  void findMachinesRequested();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* makeLeft();
  QWidget* makeDrawing();
  QWidget* makeMatrix();
  QWidget* makeToolBar();
  void refresh(Parts parts);
  void showProblem();
  void showLegend();
  void joinUnreached();

  Canvas* canvas_;
  ClusterActions* actions_;
  QWidget* empty_ = nullptr;
  QWidget* problem_ = nullptr;
  QLabel* problemText_ = nullptr;
  QPushButton* join_ = nullptr;
  QLabel* legend_ = nullptr;
  QPointer<QWidget> inspector_;
};

}  // namespace evenkeel::gui
