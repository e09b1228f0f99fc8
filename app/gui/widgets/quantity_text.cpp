// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/quantity_text.h"

#include <array>
#include <cmath>

namespace evenkeel::gui {
namespace {

const QChar kThinSpace(0x2009);

QString threeDigits(double value) {
  const double size = std::abs(value);
  return QString::number(value, 'f', size >= 100 || value == std::floor(value) ? 0 : size >= 10 ? 1 : 2);
}

template <std::size_t N>
QString scaled(double value, double step, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= step * 0.9995 && unit + 1 < N) {
    value /= step;
    ++unit;
  }
  const QString name = QString::fromUtf8(units[unit]);
  return name.isEmpty() ? threeDigits(value) : threeDigits(value) + kThinSpace + name;
}

}  // namespace

QString timeText(Seconds time) {
  const double s = time.value;
  if (s < 1e-3) return threeDigits(s * 1e6) + kThinSpace + QStringLiteral("µs");
  if (s < 1) return threeDigits(s * 1e3) + kThinSpace + QStringLiteral("ms");
  if (s < 120) return threeDigits(s) + kThinSpace + QStringLiteral("s");
  if (s < 7200) return threeDigits(s / 60) + kThinSpace + QStringLiteral("min");
  return threeDigits(s / 3600) + kThinSpace + QStringLiteral("h");
}

QString countText(double number) { return scaled<6>(number, 1000, {"", "k", "M", "G", "T", "P"}); }

QString bytesText(Bytes size) { return scaled<5>(static_cast<double>(size.value), 1024, {"B", "KiB", "MiB", "GiB", "TiB"}); }

QString percentText(double fraction) { return QString::number(100 * fraction, 'f', 1) + kThinSpace + QStringLiteral("%"); }

QString exactText(std::int64_t number) {
  QString digits = QString::number(number);
  for (auto at = digits.size() - 3; at > (number < 0 ? 1 : 0); at -= 3) digits.insert(at, kThinSpace);
  return digits;
}

}  // namespace evenkeel::gui
