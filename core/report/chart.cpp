// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace evenkeel::report {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 64, kRight = 20, kTop = 74, kBottom = 56;
constexpr int kMarks = 6;

/// The frame of a chart: its scales, grid, axes, title and legend.
class Frame {
 public:
  Frame(double low, double high) : marks_(axisMarks(low, high, kMarks)), svg_(kWidth, kHeight) {}

  [[nodiscard]] Svg& svg() { return svg_; }
  [[nodiscard]] double y(double value) const {
    return kHeight - kBottom - (value - marks_.front()) / (marks_.back() - marks_.front()) * (kHeight - kTop - kBottom);
  }
  [[nodiscard]] double ground() const { return kHeight - kBottom; }

  void drawTitle(const std::string& title, const std::vector<std::string>& names, bool asLines, const std::vector<bool>& dashed) {
    svg_.text(kLeft, 22, title, "title");
    double x = kLeft;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string colour = std::to_string(i % 6);
      if (asLines) {
        svg_.line(x, 41, x + 22, 41, "l" + colour + (dashed[i] ? " dashed" : ""));
        svg_.marker(x + 11, 41, static_cast<int>(i), "s" + colour);
      } else {
        svg_.rect(x, 35, 12, 12, "s" + colour, {}, 2);
      }
      const double sign = asLines ? 28 : 18;
      svg_.text(x + sign, 45, names[i]);
      x += sign + textWidth(names[i]) + 18;
    }
  }

  void drawAxes(const std::string& xLabel, const std::string& yLabel) {
    for (const double mark : marks_) {
      svg_.line(kLeft, y(mark), kWidth - kRight, y(mark), "grid");
      svg_.text(kLeft - 8, y(mark) + 4, fmt::format("{:g}", mark), "dim", Anchor::End);
    }
    svg_.line(kLeft, ground(), kWidth - kRight, ground(), "axis");
    svg_.text(8, kTop - 13, yLabel, "dim");
    svg_.text((kLeft + kWidth - kRight) / 2, kHeight - 10, xLabel, "dim", Anchor::Middle);
  }

  void drawBands(const std::vector<Band>& bands) {
    for (const Band& band : bands) {
      svg_.rect(kLeft, y(band.high), kWidth - kLeft - kRight, std::max(1.5, y(band.low) - y(band.high)), "wait");
      svg_.text(kWidth - kRight - 4, y(band.high) + 14, band.name, "dim", Anchor::End);
    }
  }

 private:
  std::vector<double> marks_;
  Svg svg_;
};

struct Range {
  double low = 0, high = 0;
};

Range rangeOf(const Chart& chart) {
  std::optional<Range> range;
  const auto include = [&](double value) {
    if (!range) range = Range{value, value};
    range->low = std::min(range->low, value);
    range->high = std::max(range->high, value);
  };
  if (chart.fromZero) include(0);
  for (const Series& series : chart.series) {
    for (const auto& value : series.values) {
      if (value) include(*value);
    }
  }
  for (const Band& band : chart.bands) {
    include(band.low);
    include(band.high);
  }
  if (!range) return {0, 1};
  if (range->high <= range->low) range->high = range->low + std::max(1e-9, std::abs(range->low)) * 0.1;
  return *range;
}

Frame framed(const Chart& chart, bool asLines) {
  const Range range = rangeOf(chart);
  Frame frame(range.low, range.high);
  std::vector<std::string> names;
  std::vector<bool> dashed;
  for (const Series& series : chart.series) {
    names.push_back(series.name);
    dashed.push_back(series.isDashed);
  }
  frame.drawTitle(chart.title, names, asLines, dashed);
  frame.drawBands(chart.bands);
  frame.drawAxes(chart.xLabel, chart.yLabel);
  return frame;
}

double slotWidth(const Chart& chart) {
  return (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
}

void drawCategories(const Chart& chart, Frame& frame) {
  const double slot = slotWidth(chart);
  std::size_t longest = 1;
  for (const std::string& category : chart.categories) longest = std::max(longest, static_cast<std::size_t>(textWidth(category)));
  const bool inTwoRows = static_cast<double>(longest) + 6 > slot;
  for (std::size_t i = 0; i < chart.categories.size(); ++i) {
    const double x = kLeft + slot * (static_cast<double>(i) + 0.5);
    frame.svg().text(x, frame.ground() + 16 + (inTwoRows && i % 2 == 1 ? 14 : 0), chart.categories[i], {}, Anchor::Middle);
  }
}

std::string hintOf(const Chart& chart, const Series& series, std::size_t category, double value) {
  return fmt::format("{}, {}: {:.4g}", series.name, chart.categories[category], value);
}

}  // namespace

std::vector<double> axisMarks(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> marks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) marks.push_back(i * step);
  if (marks.size() < 2) marks.push_back(marks.back() + step);
  return marks;
}

Svg lineChart(const Chart& chart) {
  Frame frame = framed(chart, true);
  drawCategories(chart, frame);
  const double slot = slotWidth(chart);
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    const std::string colour = std::to_string(s % 6);
    std::vector<std::pair<double, double>> line;
    const auto endLine = [&] {
      if (line.size() > 1) frame.svg().polyline(line, "l" + colour + (series.isDashed ? " dashed" : ""));
      line.clear();
    };
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      if (!series.values[i]) {
        endLine();
        continue;
      }
      line.emplace_back(kLeft + slot * (static_cast<double>(i) + 0.5), frame.y(*series.values[i]));
    }
    endLine();
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      if (series.values[i])
        frame.svg().marker(kLeft + slot * (static_cast<double>(i) + 0.5), frame.y(*series.values[i]), static_cast<int>(s),
                           "s" + colour, hintOf(chart, series, i, *series.values[i]));
    }
  }
  return frame.svg();
}

Svg barChart(const Chart& chart) {
  Frame frame = framed(chart, false);
  drawCategories(chart, frame);
  const double slot = slotWidth(chart),
               width = std::min(34.0, slot * 0.8 / static_cast<double>(std::max<std::size_t>(1, chart.series.size())));
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      const double middle = kLeft + slot * (static_cast<double>(i) + 0.5);
      const double x = middle + width * (static_cast<double>(s) - static_cast<double>(chart.series.size()) / 2);
      if (!series.values[i]) {
        frame.svg().text(x + width / 2, frame.ground() - 4, "×", "dim", Anchor::Middle);
        continue;
      }
      const double y = frame.y(*series.values[i]);
      frame.svg().rect(x + 1, y, width - 2, frame.ground() - y, "s" + std::to_string(s % 6),
                       hintOf(chart, series, i, *series.values[i]));
      if (width >= 26) frame.svg().text(x + width / 2, y - 4, fmt::format("{:.3g}", *series.values[i]), "dim", Anchor::Middle);
    }
  }
  return frame.svg();
}

Svg scatterChart(const std::string& title, const std::string& xLabel, const std::string& yLabel,
                 const std::vector<Cloud>& clouds) {
  std::optional<Range> xs, ys;
  std::vector<std::string> names;
  for (const Cloud& cloud : clouds) {
    names.push_back(cloud.name);
    for (const auto& [x, y] : cloud.points) {
      xs = xs ? Range{std::min(xs->low, x), std::max(xs->high, x)} : Range{x, x};
      ys = ys ? Range{std::min(ys->low, y), std::max(ys->high, y)} : Range{y, y};
    }
  }
  if (!xs) xs = ys = Range{0, 1};
  for (Range* range : {&*xs, &*ys}) {
    if (range->high <= range->low) range->high = range->low + std::max(1e-9, 0.1 * std::abs(range->low));
  }
  Frame frame(ys->low, ys->high);
  frame.drawTitle(title, names, false, {});
  frame.drawAxes(xLabel, yLabel);
  const std::vector<double> marks = axisMarks(xs->low, xs->high, kMarks);
  const auto xOf = [&](double value) {
    return kLeft + (value - marks.front()) / (marks.back() - marks.front()) * (kWidth - kLeft - kRight);
  };
  for (const double mark : marks)
    frame.svg().text(xOf(mark), frame.ground() + 16, fmt::format("{:g}", mark), "dim", Anchor::Middle);
  for (std::size_t c = 0; c < clouds.size(); ++c) {
    std::set<std::pair<int, int>> drawn;  // cells of 2 pixels: more points in one would not be told apart
    for (const auto& [x, y] : clouds[c].points) {
      const double left = xOf(x), top = frame.y(y);
      if (!drawn.emplace(static_cast<int>(left / 2), static_cast<int>(top / 2)).second) continue;
      frame.svg().marker(left, top, static_cast<int>(c), fmt::format("s{} faint", c % 6));
    }
  }
  return frame.svg();
}

}  // namespace evenkeel::report
