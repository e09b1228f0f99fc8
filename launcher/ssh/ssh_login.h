// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include "launcher/ssh/waits.h"

struct ssh_session_struct;

namespace evenkeel {

/// Where to log in. What is left open comes from ~/.ssh/config and from ssh's defaults; the config is not read when port, user
/// and identity are all given.
struct SshAddress {
  std::string host;
  std::optional<int> port;
  std::string user;
  std::string identity;    // file of a private key
  std::string knownHosts;  // file; the only one that is believed if given
};

struct SshSessionEnd {
  void operator()(ssh_session_struct* session) const;  // drops the connection without a word, so that it cannot wait
};
using SshSession = std::unique_ptr<ssh_session_struct, SshSessionEnd>;

/// Connects, checks the host's key strictly, logs in by ssh-agent or key. Never asks anybody anything: whatever would need an
/// answer is an Error with the command that settles it. An unknown host key is InvalidInput and shows its fingerprint; a
/// changed one shows both. The session is non-blocking afterwards.
[[nodiscard]] Result<SshSession> logIn(const std::string& where, const SshAddress& address, const TimeLimits& limits,
                                       const StopEvent& stop);

}  // namespace evenkeel
