// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_controls.h"

#include <QAction>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QPushButton>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/special_value.h"

namespace evenkeel::gui {

void setUpTimeLimit(QDoubleSpinBox& box) {
  box.setAccessibleName(QDoubleSpinBox::tr("Time limit"));
  box.setRange(0, 1e6);
  box.setDecimals(0);
  box.setSuffix(QDoubleSpinBox::tr(" s"));
  box.setSpecialValueText(QDoubleSpinBox::tr("none"));
  box.setValue(60);
  box.setToolTip(QDoubleSpinBox::tr("After so long the best plan until then is taken; most searches end earlier by themselves"));
  selectSpecialValueOnClick(box);
}

void addKey(QWidget& page, const QKeySequence& keys, QPushButton& button) {
  auto* action = new QAction(button.text(), &page);
  action->setShortcut(keys);
  page.addAction(action);
  QObject::connect(action, &QAction::triggered, &button, [&button] {
    if (button.isEnabled()) emit button.clicked();
  });
}

void widen(std::initializer_list<QPushButton*> buttons) {
  for (QPushButton* button : buttons) button->setMinimumWidth(button->sizeHint().width() + 20);
}

void tintAsWarning(QLabel& label) {
  QPalette tint;
  tint.setColor(QPalette::WindowText, colours(label.palette()).warning);
  label.setPalette(tint);
}

}  // namespace evenkeel::gui
