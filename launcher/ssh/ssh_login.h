// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::string proxyJump;   // "[user@]host[:port][,...]" as ssh's -J; logged in to with the same known hosts and identity
};

/// What an address comes to together with ~/.ssh/config: before any connection.
struct SshSettings {
  std::string host;
  int port = 22;
  std::string user;                     // empty: that of this process
  std::vector<std::string> identities;  // key files in the order of their trial; also those that do not exist if they were named
  std::string knownHosts;
  std::string proxyCommand;  // with its %h, %p and %r filled in; empty: none
  bool operator==(const SshSettings&) const = default;
};

/// Reads the configuration (absent: the person's own and the system's, as ssh does) unless port, user and identity are all given.
/// Errors: a host or jump host that is no name, a port outside 1..65535, a configuration that cannot be read.
[[nodiscard]] Result<SshSettings> settingsOf(const std::string& where, const SshAddress& address,
                                             const std::optional<std::string>& configFile = {});

struct SshSessionEnd {
  std::shared_ptr<void> line;  // what carries the session's bytes, if it is no plain connection; goes after it
  void operator()(ssh_session_struct* session) const;  // drops the connection without a word, so that it cannot wait
};
using SshSession = std::unique_ptr<ssh_session_struct, SshSessionEnd>;

/// What stood in a login's way and is a person's to settle. A changed host key can only be looked at.
struct LoginObstacle {
  enum class Kind { UnknownHostKey, ChangedHostKey, PassPhrase, Password, Question } kind = Kind::UnknownHostKey;
  std::string host;
  int port = 22;
  std::string shownKey;        // of host keys: "ssh-ed25519 SHA256:..." that the host shows
  std::string knownKeys;       // the same of those in the file; of a changed one only
  std::string knownHosts;      // the file
  std::string knownHostsLine;  // what trusting adds to it; of an unknown one only
  std::string identity;        // the key file that needs a pass phrase
  std::string user;            // whose password it is, or who is asked
  std::string question;        // of the server (keyboard-interactive): "Verification code:"
  bool isShown = false;        // what is typed to the question may be seen
  bool wasWrong = false;       // the one that was given does not open it
  bool operator==(const LoginObstacle&) const = default;
  /// The secret that settles it, in LoginHelp::secrets: the key file, "user@host:port" or "user@host:port question". Empty for
  /// host keys.
  [[nodiscard]] std::string secretName() const;
};

/// What a login may use besides files and ssh-agent, and what it lacked. Secrets are written nowhere and given to no other
/// process.
struct LoginHelp {
  std::map<std::string, std::string> secrets;      // by LoginObstacle::secretName()
  std::optional<LoginObstacle> obstacle;           // set by a login that failed for it
};

/// Connects (through the jump hosts, if there are any), checks the host's key strictly, logs in by ssh-agent, key, password or
/// answers to the server's questions; the latter two only as far as `help` has them. Never asks anybody anything: whatever would
/// need an answer is an Error with the command that settles it, and an obstacle of `help` (may be null). An error over an unknown
/// host key shows its fingerprint, over a changed one both. The session is non-blocking afterwards.
[[nodiscard]] Result<SshSession> logIn(const std::string& where, const SshAddress& address, const TimeLimits& limits,
                                       const StopEvent& stop, LoginHelp* help = nullptr);

/// Adds an unknown host's key, the very one that was shown, to the known hosts (which are made, with their folder, if they lack).
[[nodiscard]] Result<void> trustHostKey(const LoginObstacle& unknown);

}  // namespace evenkeel
