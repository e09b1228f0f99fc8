// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "launcher/ssh/waits.h"

namespace evenkeel {

/// Connects to the first of the host's addresses (both families) that answers; small messages are sent at once (NODELAY).
/// The Error lists what each address said. Looking up a name is the system's, with the system's own limit of time.
[[nodiscard]] Result<OwnedFd> connectTcp(const std::string& where, const std::string& host, int port, const TimeLimits& limits,
                                         const StopEvent& stop);

/// Numeric addresses of a connected socket's ends; empty if it is no internet socket.
[[nodiscard]] std::string peerAddressOf(int fd);
[[nodiscard]] std::string ownAddressOf(int fd);

}  // namespace evenkeel
