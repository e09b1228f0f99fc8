// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace evenkeel {

/// One POSIX script that asks a machine everything at once and changes nothing: each login costs more than all of its questions. Every answer
/// stands between marks, so that whatever a login shell prints is left aside.
[[nodiscard]] const std::string& probeScript();

/// What one question of the script was answered.
struct ProbeAnswer {
  std::string text;
  int exitStatus = -1;  // of the program that answered; -1: there is no such program, or it did not come to an end
  bool operator==(const ProbeAnswer&) const = default;
};

/// The answers by the question's name: "system", "nvidia", "nvidia-processes", "nvidia-links", "rocm", "npu", "pci", "network". What is cut
/// off keeps status -1.
[[nodiscard]] std::map<std::string, ProbeAnswer> answersIn(std::string_view output);

}  // namespace evenkeel
