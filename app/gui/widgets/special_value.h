// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QAbstractSpinBox;

namespace evenkeel::gui {

/// A click into the box selects its special value ("automatic") as a whole, so that what is typed replaces it.
void selectSpecialValueOnClick(QAbstractSpinBox& box);

}  // namespace evenkeel::gui
