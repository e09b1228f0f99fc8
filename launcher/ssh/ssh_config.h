// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

struct ssh_session_struct;

namespace evenkeel {

/// The same configuration with the negated patterns of each Host line first: `Host * !b3` excludes b3 wherever it stands, but libssh
/// sees a negation only before what it takes from. Nothing if the text needs no change.
[[nodiscard]] std::optional<std::string> negationsFirst(std::string_view configuration);

/// Reads a configuration into a session; absent: the person's own and the system's, as ssh does. What a session has already stays.
/// False: it cannot be used, ssh_get_error() says why. Files that are included are read as libssh reads them.
[[nodiscard]] bool parseSshConfig(ssh_session_struct* session, const std::optional<std::string>& file);

}  // namespace evenkeel
