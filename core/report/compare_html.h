// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/plan/problem.h"
#include "core/report/compared.h"

namespace evenkeel::report {

struct CompareReport {
  Problem problem;
  std::string profile;             // its description
  std::string command;             // the command line that makes this report again
  std::vector<Compared> planners;  // in the order in which they are shown
};

/// A page that needs no other file: inline style, inline SVG, no scripts, light and dark as the browser asks. Key figures, stage
/// cards, timelines on one axis, memory bars with limits, reasons where there is no plan, deviations, the command.
[[nodiscard]] std::string compareHtml(const CompareReport& report);

/// A page of one step of a run: its times as they were predicted, and below each stage as its ranks measured them.
[[nodiscard]] std::string stepHtml(const std::string& run, std::int64_t step, const Timeline& predicted, const Timeline& measured, const std::string& profile);

/// The frame of such a page around `body`.
[[nodiscard]] std::string htmlPage(const std::string& title, const std::string& body);

/// Words as a person types them into a shell: those with blanks or signs in quotes.
[[nodiscard]] std::string shellText(const std::vector<std::string>& words);

}  // namespace evenkeel::report
