// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/result.h"

namespace evenkeel {

std::string Error::text() const {
  std::string line = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) line += "; " + remedy;
  return line;
}

}  // namespace evenkeel
