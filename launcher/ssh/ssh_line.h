// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/ssh/ssh_login.h"
#include "launcher/ssh/waits.h"

namespace evenkeel {

/// A stream of bytes to a host that is not reached directly. What keeps it open (a program, a session with a jump host and its
/// thread) lives as long as `owner`.
struct SshLine {
  OwnedFd fd;
  std::shared_ptr<void> owner;
  std::function<std::string()> complaint;  // the last line that a program behind it wrote to stderr; absent if it is no program
};

/// Starts a ProxyCommand (a line for sh, its %h, %p and %r filled in already) in a session of its own, so that it finds no
/// terminal to ask at, and speaks through its stdin and stdout. Its process group ends with the owner.
[[nodiscard]] Result<SshLine> lineThroughCommand(const std::string& where, const std::string& command);

/// Asks a jump host, logged in, for a connection onwards, and carries its bytes in a thread of its own. Errors name both ends.
[[nodiscard]] Result<SshLine> lineThroughJump(const std::string& where, SshSession jump, const std::string& jumpName,
                                              const std::string& host, int port, const TimeLimits& limits, const StopEvent& stop);

}  // namespace evenkeel
