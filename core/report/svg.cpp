// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/svg.h"

#include <fmt/format.h>

namespace evenkeel::report {
namespace {

/// Two decimals are a hundredth of a pixel; trailing zeros go.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string titled(std::string_view hint) { return hint.empty() ? "" : fmt::format("<title>{}</title>", escaped(hint)); }

std::string closed(std::string_view element, std::string_view hint) {
  return hint.empty() ? "/>\n" : fmt::format(">{}</{}>\n", titled(hint), element);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string_view styleSheet() {
  // Series: Okabe and Ito's colours, which survive colour blindness, darkened or lightened to stand out from the ground.
  return R"css(
:root { color-scheme: light dark; --bg: #f3f4f6; --card: #ffffff; --ink: #1d2127; --dim: #5c636e; --line: #d5d9df; --grid: #e6e8ec;
  --accent: #0067b8; --good: #00734f; --bad: #b3261e; --wait: #e3e6ea; --forward: #3b82c4; --backward: #16507f; --sync: #b35c9c; --optimizer: #c98a00;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #b35c9c; --s4: #b07900; --s5: #3f9fd6; }
@media (prefers-color-scheme: dark) { :root { --bg: #1b1d21; --card: #25282d; --ink: #e6e8eb; --dim: #a2a9b3; --line: #3d424a; --grid: #33383f;
  --accent: #6cb4f0; --good: #4cc79a; --bad: #ff8a80; --wait: #3a3f47; --forward: #6cb4f0; --backward: #3477ad; --sync: #d48bc0; --optimizer: #e0a93a;
  --s0: #56a8e0; --s1: #f08a3c; --s2: #3cc39a; --s3: #d48bc0; --s4: #e0b44a; --s5: #8fd0f5; } }
svg { font: 12px/1.2 system-ui, "Noto Sans", "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg text.dim { fill: var(--dim); } svg text.strong { font-weight: 600; } svg text.title { font-size: 15px; font-weight: 600; }
.ground { fill: var(--card); } .axis { stroke: var(--dim); stroke-width: 1; fill: none; } .grid { stroke: var(--grid); stroke-width: 1; }
.limit { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 5 3; fill: none; }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); } .s4 { fill: var(--s4); } .s5 { fill: var(--s5); }
.l0, .l1, .l2, .l3, .l4, .l5 { fill: none; stroke-width: 2; stroke-linejoin: round; }
.l0 { stroke: var(--s0); } .l1 { stroke: var(--s1); } .l2 { stroke: var(--s2); } .l3 { stroke: var(--s3); } .l4 { stroke: var(--s4); } .l5 { stroke: var(--s5); }
.dashed { stroke-dasharray: 6 4; } .wait { fill: var(--wait); } .forward { fill: var(--forward); } .backward { fill: var(--backward); }
.sync { fill: var(--sync); } .optimizer { fill: var(--optimizer); } .faint { opacity: .45; }
)css";
}

void Svg::rect(double x, double y, double width, double height, std::string_view classes, std::string_view hint, double radius) {
  body_ += fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}")", classes, number(x), number(y),
                       number(std::max(0.0, width)), number(std::max(0.0, height)));
  if (radius > 0) body_ += fmt::format(R"( rx="{}")", number(radius));
  body_ += closed("rect", hint);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += fmt::format(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>)"
                       "\n",
                       classes, number(x1), number(y1), number(x2), number(y2));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
  body_ += fmt::format(R"(<polyline class="{}" points=")", classes);
  for (const auto& [x, y] : points) body_ += fmt::format("{},{} ", number(x), number(y));
  body_ += "\"/>\n";
}

void Svg::marker(double x, double y, int shape, std::string_view classes, std::string_view hint) {
  constexpr double kRadius = 4;
  switch (shape % 4) {
    case 0: body_ += fmt::format(R"(<circle class="{}" cx="{}" cy="{}" r="{}")", classes, number(x), number(y), kRadius); break;
    case 1:
      body_ += fmt::format(R"(<path class="{}" d="M{} {}h8v8h-8z")", classes, number(x - kRadius), number(y - kRadius));
      break;
    case 2: body_ += fmt::format(R"(<path class="{}" d="M{} {}l5 9h-10z")", classes, number(x), number(y - 5)); break;
    default: body_ += fmt::format(R"(<path class="{}" d="M{} {}l5 5l-5 5l-5 -5z")", classes, number(x), number(y - 5));
  }
  body_ += closed(shape % 4 == 0 ? "circle" : "path", hint);
}

void Svg::text(double x, double y, std::string_view text, std::string_view classes, Anchor anchor) {
  const std::string_view anchors[] = {"", R"( text-anchor="middle")", R"( text-anchor="end")"};
  body_ += fmt::format(R"(<text x="{}" y="{}"{}{}>{}</text>)"
                       "\n",
                       number(x), number(y), classes.empty() ? "" : fmt::format(R"( class="{}")", classes),
                       anchors[static_cast<int>(anchor)], escaped(text));
}

void Svg::bars(double y, double height, const std::vector<std::pair<double, double>>& bars, std::string_view classes) {
  if (bars.empty()) return;
  body_ += fmt::format(R"(<path class="{}" d=")", classes);
  for (const auto& [x, width] : bars)
    body_ += fmt::format("M{} {}h{}v{}h-{}z", number(x), number(y), number(width), number(height), number(width));
  body_ += "\"/>\n";
}

std::string Svg::wrapped(std::string_view label, std::string_view head) const {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">)"
      "\n{3}{4}</svg>\n",
      number(width_), number(height_), escaped(label), head, body_);
}

std::string Svg::inlined(std::string_view label) const { return wrapped(label, ""); }

std::string Svg::standalone(std::string_view label) const {
  return wrapped(label,
                 fmt::format("<style>{}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", styleSheet()));
}

double textWidth(std::string_view text) {
  constexpr double kPerLetter = 6.6;
  std::size_t letters = 0;
  for (const char c : text)
    letters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;  // without the rest of a UTF-8 letter
  return kPerLetter * static_cast<double>(letters);
}

}  // namespace evenkeel::report
