// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <filesystem>
#include <vector>

#include "core/plan/violations.h"
#include "core/plan/run.h"

namespace evenkeel::gui {

/// Every reason why the runtime cannot execute a plan: broken invariants and too little memory, else what it does not have yet.
/// `programs`: the folder of the workers. Empty: it can be launched. The same that `evenkeel-cli launch` says.
[[nodiscard]] std::vector<Violation> launchObjections(const Plan& plan, const std::filesystem::path& programs);

/// The command that does what the Launch button does, as a POSIX shell reads it.
[[nodiscard]] QString launchCommand(const std::filesystem::path& planFile, const Run& run, const QString& resume, bool isLocal);

/// Writes the plan into the folder (made when it is needed), under a name made of `name` and its content, so that a command that
/// names it stays right. The file, or why it cannot be written.
[[nodiscard]] Result<std::filesystem::path> writePlan(const Plan& plan, const QString& name, const QString& folder);

}  // namespace evenkeel::gui
