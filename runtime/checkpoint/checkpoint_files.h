// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/model/training.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/optim/loss_scale.h"

namespace evenkeel {

/// The name under which a checkpoint keeps it.
[[nodiscard]] std::string storedName(ModelState state, const TensorSpec& tensor);

/// A checkpoint is a folder "step-0000000200": safetensors files of whole tensors under their full names (weights; moments as
/// "first_moment.NAME" and "second_moment.NAME"), model.safetensors.index.json (which file holds what), and checkpoint.json (step, model,
/// seed, data, checksums). Nothing in it depends on the plan that wrote it. It is written beside its place, flushed and renamed, so that a
/// folder of that name is whole.
struct CheckpointFacts {
  std::int64_t step = 0;  // finished steps; 0: weights from elsewhere (hugging_face.h), of which there are no moments
  Model model;
  std::int64_t sequenceLength = 0, globalBatch = 0;
  std::uint64_t seed = 0;
  std::string dataSha256, runId, planSha256;  // may be empty
  std::optional<LossScale> lossScale;         // of a run in fp16
};

inline constexpr std::string_view kCheckpointFormat = "evenkeel.checkpoint/1";

/// Writes one checkpoint in a thread of its own while training goes on.
class CheckpointWriter {
 public:
  /// `tensors`: all of the model, each once. Moments come after the weights unless the step is 0. Of `directory`, which is made if it lacks, the newest `keep` checkpoints stay.
  CheckpointWriter(std::filesystem::path directory, int keep, CheckpointFacts facts, std::vector<TensorSpec> tensors);
  /// Without a finished checkpoint nothing is left of it.
  ~CheckpointWriter();

  /// The next tensor, row by row: all tensors for each state in turn, in the order of the list. Waits while more than a gibibyte is not yet on the
  /// disk. After a failure what is handed over is dropped.
  void put(std::vector<float> values);
  /// The folder once it is in its place, or why it is not; nothing while it is being written.
  [[nodiscard]] std::optional<Result<std::filesystem::path>> poll();
  /// The same; waits for it. Every tensor must have been put.
  [[nodiscard]] Result<std::filesystem::path> wait();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

/// A checkpoint that was opened and checked: all of its files are there and have the sums that it says.
class CheckpointReader {
 public:
  /// `place`: a checkpoint's folder, or a folder of checkpoints: then the newest that is whole; those that are not are `passedOver`.
  [[nodiscard]] static Result<CheckpointReader> open(const std::filesystem::path& place);

  [[nodiscard]] const CheckpointFacts& facts() const { return facts_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const std::vector<Error>& passedOver() const { return passedOver_; }
  /// Why it does not fit a model; nothing if it does.
  [[nodiscard]] std::optional<Error> objection(const Model& model) const;
  /// A whole tensor, row by row. Moments at step 0 are 0.
  [[nodiscard]] Result<std::vector<float>> read(ModelState state, const TensorSpec& tensor) const;

 private:
  static Result<CheckpointReader> openFolder(const std::filesystem::path& folder);

  std::filesystem::path folder_;
  CheckpointFacts facts_;
  std::vector<SafetensorsFile> files_;
  std::vector<Error> passedOver_;
};

/// The checkpoints of a folder, newest first.
[[nodiscard]] std::vector<std::filesystem::path> checkpointsIn(const std::filesystem::path& directory);

}  // namespace evenkeel
