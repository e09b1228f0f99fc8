// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/ssh/ssh_login.h"

struct ssh_key_struct;

namespace evenkeel {

/// "SHA256:..." as ssh-keygen -l prints it.
[[nodiscard]] std::string fingerprintOf(ssh_key_struct* key);

/// Compares the key that a connected session shows with the known hosts. An Error shows the fingerprint of an unknown key, of a
/// changed one both, and the command that settles it; `obstacle` is then what stands in the way.
[[nodiscard]] Result<void> checkHostKey(const std::string& where, ssh_session_struct* session, const SshSettings& settings,
                                        std::optional<LoginObstacle>& obstacle);

}  // namespace evenkeel
