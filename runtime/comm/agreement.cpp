// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/agreement.h"

#include <fmt/format.h>

#include "core/base/json.h"

namespace evenkeel {
namespace {

std::string keyOf(int rank) { return fmt::format("agreement/{}", rank); }

std::string textOf(const Agreement& agreement) {
  return Json{{"plan", agreement.plan}, {"run", agreement.run}, {"data", agreement.data}}.dump();
}

/// "plan", "plan and data"
std::string difference(const std::string& first, const std::string& second) {
  const Json a = Json::parse(first, nullptr, false), b = Json::parse(second, nullptr, false);
  std::string words;
  for (const char* key : {"plan", "run", "data"}) {
    if (a.is_object() && b.is_object() && a.value(key, "") == b.value(key, "")) continue;
    words += (words.empty() ? "" : " and ") + std::string(key);
  }
  return words;
}

}  // namespace

Result<void> agree(Rendezvous& rendezvous, const Agreement& own, int rank, int worldSize) {
  if (auto published = rendezvous.publish(keyOf(rank), textOf(own)); !published) return published;
  std::string first, unlike;
  for (int other = 0; other < worldSize; ++other) {
    const auto text = rendezvous.await(keyOf(other));
    if (!text) return unreachable(fmt::format("rank {}", other), "did not start: " + text.error().what, "see its log");
    if (other == 0) first = *text;
    if (*text != first)
      unlike += fmt::format("{}rank {} (another {})", unlike.empty() ? "" : ", ", other, difference(first, *text));
  }
  if (unlike.empty()) return {};
  return failed("start", "not all ranks were given the same job; unlike rank 0: " + unlike,
                "write the same job.json to every node");
}

}  // namespace evenkeel
