// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/ssh/host.h"

namespace evenkeel {

/// This machine. Commands run in process groups of their own, with our environment and no shell.
class LocalHost final : public Host {
 public:
  explicit LocalHost(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] Result<Ending> execute(const Command& command, std::stop_token stop = {}) override;

 private:
  std::string name_;
};

/// "SIGKILL" for 9; "signal 200" for a number without a name.
[[nodiscard]] std::string signalName(int signal);

}  // namespace evenkeel
