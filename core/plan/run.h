// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_reader.h"

namespace evenkeel {

/// The part of the training's settings that a plan does not depend on. Defaults as in architecture.md.
struct Run {
  std::int64_t steps = 0;
  struct LearningRate {
    double peak = 1e-3;
    std::int64_t warmupSteps = 10;
    enum class Schedule { Cosine, Linear, Constant } schedule = Schedule::Cosine;
    double final = 0.1;  // fraction of peak at the last step; a constant one ignores it
    bool operator==(const LearningRate&) const = default;
    /// Of step `step` (0-based) of `steps`: linear warm-up, then along the schedule down to final x peak.
    [[nodiscard]] double at(std::int64_t step, std::int64_t steps) const;
  } learningRate;
  double weightDecay = 0.1;  // of tensors with 2 dimensions
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double gradientClip = 0;   // longest gradient of the whole model (its norm); 0: as long as it is
  double dropout = 0;        // probability, after attention's softmax and before each residual addition
  std::uint64_t seed = 1;
  struct Checkpoint {
    std::int64_t every = 0;  // steps; 0: none. With any, the last step is saved too
    int keep = 3;            // the newest ones
    std::string directory;   // absolute, on the machine of rank 0; empty: in the run's directory there
    bool operator==(const Checkpoint&) const = default;
  } checkpoint;
  enum class OnFailure {
    Stop,
    Resume,
    Replan
  } onFailure = OnFailure::Stop;  // Resume: on the same nodes; Replan: without the one that failed
  std::string endCommand;  // a shell line for the workstation, run when the run ends; it finds run and cause in its environment
  using Environment = std::map<std::string, std::string>;  // added to what a worker finds, never taken from it
  Environment environment;                                 // of all workers
  std::map<std::string, Environment> nodeEnvironment;      // of those of one node, by its name; wins over the other
  std::vector<std::string> train;       // text files or folders, as the person named them
  std::vector<std::string> validation;  // as train; what evaluations read
  struct Evaluation {
    std::int64_t every = 0;    // steps; 0: none. With any, the last step is evaluated too
    std::int64_t batches = 1;  // global batches that an evaluation reads, always the same ones
    bool operator==(const Evaluation&) const = default;
  } evaluation;
  struct Rehearsal {
    double timeScale = 1;  // of the plan's predicted times, which are slept instead of computing
    bool operator==(const Rehearsal&) const = default;
  };
  std::vector<std::int64_t> traceSteps;  // steps (from 1) of which every rank reports what it did when
  std::optional<Rehearsal> rehearsal;  // on virtual devices: all messages, no arithmetic
  Json extra;
  bool operator==(const Run&) const = default;
};

inline constexpr std::string_view kRunFormat = "evenkeel.run/1";

/// "environment" holds texts, for all nodes, and objects of texts, for the node of that name. A field that the runtime does not have yet
/// ("tokens") is refused as "not yet".
[[nodiscard]] Run readRun(JsonReader& reader);
[[nodiscard]] Json toJson(const Run& run);

/// "stop", "resume", "replan"
[[nodiscard]] std::string_view name(Run::OnFailure wish);
[[nodiscard]] std::optional<Run::OnFailure> onFailureNamed(std::string_view word);

}  // namespace evenkeel
