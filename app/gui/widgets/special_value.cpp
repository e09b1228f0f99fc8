// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/special_value.h"

#include <QAbstractSpinBox>
#include <QEvent>
#include <QLineEdit>

namespace evenkeel::gui {
namespace {

class Filter final : public QObject {
 public:
  explicit Filter(QAbstractSpinBox& box) : QObject(&box), box_(box) {}

 private:
  bool eventFilter(QObject* watched, QEvent* event) override {
    auto* line = qobject_cast<QLineEdit*>(watched);
    if (event->type() == QEvent::MouseButtonRelease && line->text() == box_.specialValueText() && !line->hasSelectedText())
      box_.selectAll();
    return false;
  }
  QAbstractSpinBox& box_;
};

}  // namespace

void selectSpecialValueOnClick(QAbstractSpinBox& box) { box.findChild<QLineEdit*>()->installEventFilter(new Filter(box)); }

}  // namespace evenkeel::gui
