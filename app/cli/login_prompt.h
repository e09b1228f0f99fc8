// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "launcher/job/job.h"

namespace evenkeel::cli {

/// How the commands reach nodes. On a terminal a person is asked what a login needs (an unknown host key, a pass phrase, a
/// password, a question of the server), once for all nodes that need the same; what is typed is not shown, written nowhere and
/// forgotten with the program. Elsewhere nobody is asked, and the login's Error says what to do.
[[nodiscard]] Connector connectorForTerminal();

/// Launcher::open() with it.
[[nodiscard]] Result<Launcher> openLauncher();

}  // namespace evenkeel::cli
