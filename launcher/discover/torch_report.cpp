// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/torch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/json.h"
#include "core/base/words.h"

namespace evenkeel {
namespace {

/// The oldest Linux driver for each CUDA major version. Source: NVIDIA, "CUDA Compatibility", minor version compatibility,
/// table 1.
constexpr std::array<std::pair<int, std::array<int, 2>>, 3> kOldestDriver = {{{11, {450, 80}}, {12, {525, 60}}, {13, {580, 0}}}};

/// The first two numbers of "535.129.03", "8.0"; nothing if it does not begin with two.
std::optional<std::array<int, 2>> twoNumbers(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dot + 1);
  const auto first = parseNumber<int>(text.substr(0, dot)), second = parseNumber<int>(rest.substr(0, rest.find('.')));
  if (!first || !second || *first < 0 || *second < 0) return std::nullopt;
  return std::array{*first, *second};
}

/// "sm_86" runs on cards of its generation from its own number on, "compute_86" (to be compiled there) on all later ones too.
bool covers(const std::string& architecture, const std::array<int, 2>& capability) {
  const std::size_t bar = architecture.find('_');
  if (bar == std::string::npos) return false;
  std::string digits = architecture.substr(bar + 1);
  while (!digits.empty() && (digits.back() < '0' || digits.back() > '9')) digits.pop_back();  // "sm_90a"
  const int number = parseNumber<int>(digits).value_or(-1), own = capability[0] * 10 + capability[1];
  if (number < 10) return false;
  if (architecture.starts_with("compute_")) return number <= own;
  return architecture.starts_with("sm_") && number / 10 == capability[0] && number <= own;
}

}  // namespace

std::optional<FoundTorch> parseTorch(std::string_view text) {
  const std::size_t begin = text.find("{\"path\"");  // warnings may stand before it
  if (begin == std::string_view::npos) return std::nullopt;
  const auto json = parseJson(text.substr(begin, text.find('\n', begin) - begin), "torch");
  if (!json || !json->is_object()) return std::nullopt;
  const auto textOf = [&](const char* key) {
    return json->contains(key) && (*json)[key].is_string() ? (*json)[key].get<std::string>().substr(0, 400) : std::string();
  };
  FoundTorch torch{
      .path = textOf("path"), .version = textOf("version"), .cuda = textOf("cuda"), .nccl = textOf("nccl"), .architectures = {}};
  if (const auto listed = json->find("architectures"); listed != json->end() && listed->is_array()) {
    for (const Json& one : *listed) {
      if (one.is_string()) torch.architectures.push_back(one.get<std::string>());
    }
  }
  return torch.version.empty() ? std::nullopt : std::optional(torch);
}

std::string objectionTo(const FoundTorch& torch, const FoundDevice& device) {
  if (torch.cuda.empty()) return fmt::format("torch {} in {} knows the CPU only", torch.version, torch.path);
  const auto capability = twoNumbers(device.capability);
  if (capability && !torch.architectures.empty() &&
      std::ranges::none_of(torch.architectures, [&](const std::string& a) { return covers(a, *capability); }))
    return fmt::format("torch {} has no code for compute capability {} (it has {})", torch.version, device.capability,
                       fmt::join(torch.architectures, ", "));
  const auto cuda = twoNumbers(torch.cuda), driver = twoNumbers(device.driver);
  if (!cuda || !driver) return {};
  for (const auto& [major, oldest] : kOldestDriver) {
    if (major == (*cuda)[0] && *driver < oldest)
      return fmt::format("driver {} is too old for CUDA {}: it needs {}.{} at least", device.driver, torch.cuda, oldest[0],
                         oldest[1]);
  }
  return {};
}

std::string unlikeNccl(const std::vector<std::pair<std::string, FoundTorch>>& hosts) {
  std::map<std::string, std::vector<std::string>> versions;
  for (const auto& [host, torch] : hosts) {
    if (!torch.nccl.empty()) versions[torch.nccl].push_back(host);
  }
  if (versions.size() < 2) return {};
  std::string said;
  for (const auto& [version, names] : versions)
    said += fmt::format("{}{} on {}", said.empty() ? "NCCL " : ", ", version, fmt::join(names, " and "));
  return said;
}

}  // namespace evenkeel
