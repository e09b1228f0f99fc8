// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <utility>

#include "launcher/ssh/host.h"

namespace evenkeel {

/// A host that exists only in memory, for tests: a function answers its commands, uploads land in a map, both are recorded.
class FakeHost final : public Host {
 public:
  using Answer = std::function<Result<Ending>(const Command&, std::stop_token)>;
  FakeHost(std::string name, Answer answer) : name_(std::move(name)), answer_(std::move(answer)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] Result<Ending> execute(const Command& command, std::stop_token stop = {}) override;

  /// For answers: writes to the command's stdout and ends with the status.
  [[nodiscard]] static Ending reply(const Command& command, std::string_view out, int exitStatus = 0);

  [[nodiscard]] const std::vector<std::vector<std::string>>& commands() const { return commands_; }
  [[nodiscard]] const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::string name_;
  Answer answer_;
  std::vector<std::vector<std::string>> commands_;
  std::map<std::string, std::string> files_;  // path -> bytes of what was uploaded
};

}  // namespace evenkeel
