// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/svg.h"

namespace evenkeel::report {

/// Values of one line or colour of bars, one a category; nothing where there is none.
struct Series {
  std::string name;
  std::vector<std::optional<double>> values;
  bool isDashed = false;
};

/// A range that is drawn behind the values, such as the one that a paper reports.
struct Band {
  std::string name;
  double low = 0, high = 0;
};

struct Chart {
  std::string title, xLabel, yLabel;
  std::vector<std::string> categories;  // from left to right
  std::vector<Series> series;           // at most 6
  std::vector<Band> bands;
  bool fromZero = true;
};

/// Lines with a mark at every value; a gap where a value is missing.
[[nodiscard]] Svg lineChart(const Chart& chart);
/// Bars of a category side by side; a cross where a value is missing.
[[nodiscard]] Svg barChart(const Chart& chart);

/// One cloud of points.
struct Cloud {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
[[nodiscard]] Svg scatterChart(const std::string& title, const std::string& xLabel, const std::string& yLabel,
                               const std::vector<Cloud>& clouds);

/// Rising marks of 1, 2 or 5 times a power of ten, about `count` of them, that cover [low, high]; low < high.
[[nodiscard]] std::vector<double> axisMarks(double low, double high, int count);

}  // namespace evenkeel::report
