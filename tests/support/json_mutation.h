// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <random>
#include <vector>

#include "core/base/json.h"

namespace evenkeel {

/// Changes one random value of a document to something that a broken or hostile file might hold.
inline void mutate(Json& document, std::mt19937& random) {
  std::vector<Json*> values;
  const auto collect = [&](auto&& self, Json& value) -> void {
    values.push_back(&value);
    if (value.is_structured()) {
      for (Json& child : value) self(self, child);
    }
  };
  collect(collect, document);
  const auto pick = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  Json& value = *values[pick(values.size())];
  static const std::vector<Json> kOdd = {nullptr, true, 0, 1, -1, 2, 3, 7, 64, 100000, 2147483647, -2147483648LL, 9223372036854775807LL, 1e-300, 1e300, 0.5, -0.0,
                                         "", "x", "cpu-0/0", "cpu", Json::array(), Json::object(), Json::array({0, 1}), Json::array({1, 0}), Json::array({-5, 3})};
  if (value.is_structured() && !value.empty() && pick(2) == 0) {
    if (value.is_array() && pick(2) == 0) value.push_back(value[pick(value.size())]);
    else value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(pick(value.size()))));
    return;
  }
  value = kOdd[pick(kOdd.size())];
}

}  // namespace evenkeel
