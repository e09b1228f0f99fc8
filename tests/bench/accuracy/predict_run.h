// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/cost/evaluate.h"
#include "tests/bench/accuracy/measured_runs.h"

namespace evenkeel::accuracy {

struct RunPrediction {
  Seconds time;
  Bytes peak;  // of the fullest card
  Seconds pipeline, sync, optimizer;
};

/// Whose op times are taken.
enum class Times { Imported, Analytic };

/// The run as a plan of ours on a cluster of ours, evaluated with the profiles and link fits of `data` (the folder of the
/// reference data) and the traits of its runtime.
[[nodiscard]] Result<RunPrediction> predict(const MeasuredRun& run, const std::filesystem::path& data,
                                            Times times = Times::Imported);

}  // namespace evenkeel::accuracy
