// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/base/token_files.h"
#include "core/plan/features.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"

namespace evenkeel {

/// What the launcher asks of every rank: job.json of resources/docs/protocol.md.
struct Job {
  std::string runId;
  Plan plan;
  Run run;
  std::filesystem::path trainFile;  // tokens to train on
  TokenType tokenType = TokenType::Uint8;
  std::string trainSha256;          // of the whole file; empty: not given
  std::optional<std::int64_t> trainBytes;  // of it are trained on, the rest is for evaluations; nothing: all of them
  Seconds peerTimeout{60};          // longest silence of a peer that is waited for
  Seconds startTimeout{120};        // until all ranks have met
  std::filesystem::path folder;     // of the job's file: what the run writes goes there unless it says otherwise
  std::string resume;               // a checkpoint, or a folder of them, on the machine of rank 0; empty: from the beginning
  std::string planSha256;           // of the plan as this rank read it
};

inline constexpr std::string_view kJobFormat = "evenkeel.job/1";

[[nodiscard]] Result<Job> parseJob(const Json& json, const std::string& source, const RuntimeFeatures& runtime = ownRuntime());
/// Also refuses plans of invalid shape and plans that `runtime` cannot execute, naming the first reason and their number.
[[nodiscard]] Result<Job> loadJob(const std::filesystem::path& file, const RuntimeFeatures& runtime = ownRuntime());

/// Who this process is among the ranks of the job, from the environment.
struct RankEnvironment {
  std::string masterAddress;
  int masterPort = 0;
  int rank = 0, worldSize = 1;
  std::string trainAddress;  // address of this node to bind for training
  bool operator==(const RankEnvironment&) const = default;
};

using Variables = std::function<std::optional<std::string>(const std::string& name)>;
/// The variables of this process.
[[nodiscard]] std::optional<std::string> processVariable(const std::string& name);

/// Fails where a variable is missing or no number, RANK is outside of WORLD_SIZE, or WORLD_SIZE differs from `usedDevices`.
[[nodiscard]] Result<RankEnvironment> readRankEnvironment(const Variables& variables, int usedDevices);

}  // namespace evenkeel
