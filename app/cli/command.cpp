// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"

#include <fmt/format.h>

namespace evenkeel::cli {

int report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.text());
  switch (error.code) {
    case Error::Code::InvalidInput: return kUsage;
    case Error::Code::Infeasible: return kInfeasible;
    case Error::Code::Unreachable:
    case Error::Code::Cancelled:
    case Error::Code::Failed: return kFailed;
  }
  return kFailed;
}

void printJson(const Json& json) { fmt::print("{}", prettyText(json)); }

}  // namespace evenkeel::cli
