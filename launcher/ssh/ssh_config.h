// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

struct ssh_session_struct;

namespace evenkeel {

/// Reads a configuration into a session; absent: the person's own and the system's, as ssh does. What a session has already stays.
/// False: it cannot be used, ssh_get_error() says why. Two things are read as ssh reads them and not as libssh does, in included files too: a negated
/// pattern (`Host * !b3`) counts wherever it stands in its line, and an Include without a folder is looked for in ~/.ssh or /etc/ssh.
[[nodiscard]] bool parseSshConfig(ssh_session_struct* session, const std::optional<std::string>& file);

}  // namespace evenkeel
