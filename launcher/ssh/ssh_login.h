// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

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

/// What stood in a login's way and is a person's to settle. A changed host key can only be looked at.
struct LoginObstacle {
  enum class Kind { UnknownHostKey, ChangedHostKey, PassPhrase } kind = Kind::UnknownHostKey;
  std::string host;
  int port = 22;
  std::string shownKey;        // of host keys: "ssh-ed25519 SHA256:..." that the host shows
  std::string knownKeys;       // the same of those in the file; of a changed one only
  std::string knownHosts;      // the file
  std::string knownHostsLine;  // what trusting adds to it; of an unknown one only
  std::string identity;        // the key file that needs a pass phrase
  bool wasWrong = false;       // the one that was given does not open it
  bool operator==(const LoginObstacle&) const = default;
};

/// What a login may use besides files and ssh-agent, and what it lacked. Pass phrases are written nowhere.
struct LoginHelp {
  std::map<std::string, std::string> passPhrases;  // by key file
  std::optional<LoginObstacle> obstacle;           // set by a login that failed for it
};

/// Connects, checks the host's key strictly, logs in by ssh-agent or key. Never asks anybody anything: whatever would need an
/// answer is an Error with the command that settles it, and an obstacle of `help` (may be null). An error over an unknown host
/// key shows its fingerprint, over a changed one both. The session is non-blocking afterwards.
[[nodiscard]] Result<SshSession> logIn(const std::string& where, const SshAddress& address, const TimeLimits& limits,
                                       const StopEvent& stop, LoginHelp* help = nullptr);

/// Adds an unknown host's key, the very one that was shown, to the known hosts (which are made, with their folder, if they lack).
[[nodiscard]] Result<void> trustHostKey(const LoginObstacle& unknown);

}  // namespace evenkeel
