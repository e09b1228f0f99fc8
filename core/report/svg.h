// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evenkeel::report {

/// Text for HTML, XML and their attributes.
[[nodiscard]] std::string escaped(std::string_view text);

/// The colours of all pictures as CSS variables for light and dark (by prefers-color-scheme), and the classes that use them:
/// s0..s5 (series: fill), l0..l5 (series: stroke), axis, grid, dim, limit, bg and the kinds of span.
[[nodiscard]] std::string_view styleSheet();

enum class Anchor { Start, Middle, End };

/// Writes an SVG picture shape by shape, in user units from the top left. Colours come from classes of the style sheet.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  /// `hint` is shown by browsers while the pointer rests on the shape; may be empty.
  void rect(double x, double y, double width, double height, std::string_view classes, std::string_view hint = {},
            double radius = 0);
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes);
  void marker(double x, double y, int shape, std::string_view classes, std::string_view hint = {});
  void text(double x, double y, std::string_view text, std::string_view classes = {}, Anchor anchor = Anchor::Start);
  /// Many equal bars of one class as one shape: (x, width) of each, on one line.
  void bars(double y, double height, const std::vector<std::pair<double, double>>& bars, std::string_view classes);

  /// The picture inside HTML that has the style sheet. `label` is for screen readers.
  [[nodiscard]] std::string inlined(std::string_view label) const;
  /// A file of its own.
  [[nodiscard]] std::string standalone(std::string_view label) const;

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }

 private:
  [[nodiscard]] std::string wrapped(std::string_view label, std::string_view head) const;
  double width_, height_;
  std::string body_;
};

/// About how wide a text is, in user units at the style sheet's size.
[[nodiscard]] double textWidth(std::string_view text);

}  // namespace evenkeel::report
