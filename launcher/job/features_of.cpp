// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/features_of.h"

#include "launcher/deploy/worker_builds.h"

namespace evenkeel {

RuntimeFeatures featuresOf(const std::filesystem::path& programs) { return ownRuntime(!workerBuilds(programs).empty()); }

}  // namespace evenkeel
