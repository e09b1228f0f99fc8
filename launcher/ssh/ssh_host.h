// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "launcher/ssh/host.h"
#include "launcher/ssh/ssh_login.h"

namespace evenkeel {

/// A machine behind SSH: one connection, logged in (see logIn). A session that does not answer within a command's limits is
/// dropped; make a new Host then. What a shell prints when it starts (.bashrc) is kept out of the commands' output.
[[nodiscard]] Result<std::unique_ptr<Host>> connectSsh(const std::string& name, const SshAddress& address,
                                                       std::chrono::milliseconds deadline, std::stop_token stop = {},
                                                       LoginHelp* help = nullptr);

}  // namespace evenkeel
