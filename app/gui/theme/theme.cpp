// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/theme/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QPainter>
#include <QProxyStyle>
#include <QStyleOption>
#include <array>

namespace evenkeel::gui {
namespace {

QFont uiFont() {
  // Noto Sans has digits of equal width, so that live numbers do not jitter; DejaVu Sans is always there.
  QFont font(QFontDatabase::families().contains(QStringLiteral("Noto Sans")) ? QStringLiteral("Noto Sans") : QStringLiteral("DejaVu Sans"));
  font.setPointSizeF(9.5);
  return font;
}

struct Tones {
  QColor window, base, alternate, button, text, dimText, disabled, light, midlight, mid, dark, shadow, highlight, link, toolTip;
};

QPalette paletteOf(const Tones& t) {
  QPalette palette;
  palette.setColor(QPalette::Window, t.window);
  palette.setColor(QPalette::Base, t.base);
  palette.setColor(QPalette::AlternateBase, t.alternate);
  palette.setColor(QPalette::Button, t.button);
  palette.setColor(QPalette::ToolTipBase, t.toolTip);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText, QPalette::BrightText}) {
    palette.setColor(role, t.text);
    palette.setColor(QPalette::Disabled, role, t.disabled);
  }
  palette.setColor(QPalette::PlaceholderText, t.dimText);
  palette.setColor(QPalette::Light, t.light);
  palette.setColor(QPalette::Midlight, t.midlight);
  palette.setColor(QPalette::Mid, t.mid);
  palette.setColor(QPalette::Dark, t.dark);
  palette.setColor(QPalette::Shadow, t.shadow);
  palette.setColor(QPalette::Highlight, t.highlight);
  palette.setColor(QPalette::HighlightedText, QColor(0xffffff));
  palette.setColor(QPalette::Disabled, QPalette::Highlight, t.mid);
  palette.setColor(QPalette::Disabled, QPalette::Base, t.window);  // a field that cannot be written into looks so
  palette.setColor(QPalette::Link, t.link);
  palette.setColor(QPalette::LinkVisited, t.link);
  return palette;
}

QPalette lightPalette() {
  return paletteOf({.window = QColor(0xf3f4f6), .base = QColor(0xffffff), .alternate = QColor(0xf7f8fa), .button = QColor(0xe9ebef), .text = QColor(0x1d2127),
                    .dimText = QColor(0x6b7280), .disabled = QColor(0x9aa1ab), .light = QColor(0xffffff), .midlight = QColor(0xf0f1f4), .mid = QColor(0xc3c8d0),
                    .dark = QColor(0xa3a9b3), .shadow = QColor(0x6f757e), .highlight = QColor(0x0067b8), .link = QColor(0x0067b8), .toolTip = QColor(0xfffde7)});
}

QPalette darkPalette() {
  return paletteOf({.window = QColor(0x23262b), .base = QColor(0x2c3036), .alternate = QColor(0x30343b), .button = QColor(0x343941), .text = QColor(0xe6e8eb),
                    .dimText = QColor(0x9aa1ab), .disabled = QColor(0x737a84), .light = QColor(0x454b54), .midlight = QColor(0x3d424a), .mid = QColor(0x4a505a),
                    .dark = QColor(0x1a1c20), .shadow = QColor(0x121417), .highlight = QColor(0x2f7fc4), .link = QColor(0x6cb4f0), .toolTip = QColor(0x3a3f47)});
}

/// Fusion draws the outline of a box that can be ticked darker than the window: on a dark one it is not to be seen.
class OutlinedFusion final : public QProxyStyle {
 public:
  OutlinedFusion() : QProxyStyle(QStringLiteral("Fusion")) {}
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* data) const override {
    // Words are enough on buttons; the style's own pictures fit no scheme.
    return hint == SH_DialogButtonBox_ButtonsHaveIcons ? 0 : QProxyStyle::styleHint(hint, option, widget, data);
  }
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool isBox = element == PE_IndicatorCheckBox || element == PE_IndicatorItemViewItemCheck;
    if ((!isBox && element != PE_IndicatorRadioButton) || !isDark(option->palette)) return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const bool isEnabled = option->state.testFlag(State_Enabled);
    painter->setPen(QPen(option->palette.color(isEnabled ? QPalette::PlaceholderText : QPalette::Mid), 1));
    painter->setBrush(Qt::NoBrush);
    const QRectF edge = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
    isBox ? painter->drawRoundedRect(edge, 2, 2) : painter->drawEllipse(edge);
    painter->restore();
  }
};

bool systemIsDark() {
  const QPalette palette = QApplication::palette();
  return isDark(palette);
}

}  // namespace

void applyTheme(QApplication& application, ColourScheme scheme) {
  static const bool systemWasDark = systemIsDark();  // before our own palette hides it
  QApplication::setStyle(new OutlinedFusion);
  application.setFont(uiFont());
  const bool dark = scheme == ColourScheme::Dark || (scheme == ColourScheme::System && systemWasDark);
  QApplication::setPalette(dark ? darkPalette() : lightPalette());
}

bool isDark(const QPalette& palette) { return qGray(palette.color(QPalette::Window).rgb()) < qGray(palette.color(QPalette::WindowText).rgb()); }

const Colours& colours(const QPalette& palette) {
  static const Colours light{.forward = QColor(0x3b7dc4), .backward = QColor(0x2e9c74), .recompute = QColor(0xe08a1e), .send = QColor(0x8d939c),
                             .sync = QColor(0x8b6bb8), .optimizer = QColor(0xb0557b), .waiting = QColor(0xdfe2e7), .information = QColor(0x0067b8),
                             .warning = QColor(0xb26a00), .error = QColor(0xc0262d), .good = QColor(0x1f7a4d), .canvas = QColor(0xfbfbfc),
                             .grid = QColor(0xd9dce1), .link = QColor(0x7b828c), .accent = QColor(0x0067b8), .subtle = QColor(0x6b7280)};
  static const Colours dark{.forward = QColor(0x5b9bdc), .backward = QColor(0x4dbb92), .recompute = QColor(0xf0a94a), .send = QColor(0x8d939c),
                            .sync = QColor(0xa98bd6), .optimizer = QColor(0xd07ba0), .waiting = QColor(0x3a3f47), .information = QColor(0x6cb4f0),
                            .warning = QColor(0xf0b04a), .error = QColor(0xff7b7b), .good = QColor(0x6fd19c), .canvas = QColor(0x1f2226),
                            .grid = QColor(0x3a3f47), .link = QColor(0x8d939c), .accent = QColor(0x6cb4f0), .subtle = QColor(0x9aa1ab)};
  return isDark(palette) ? dark : light;
}

QColor deviceColour(int typeIndex) {
  // Okabe and Ito, "Color Universal Design", 2008.
  static constexpr std::array<QRgb, 6> kColours = {0x0072B2, 0xE69F00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xD55E00};
  return QColor(kColours[static_cast<std::size_t>(typeIndex) % kColours.size()]);
}

}  // namespace evenkeel::gui
