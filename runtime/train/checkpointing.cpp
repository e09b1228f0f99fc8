// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/checkpointing.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>

namespace evenkeel {

Checkpointing::Checkpointing(const Job& job, const BlockMap& map, Parameters& parameters, Comm& comm, EventWriter& events)
    : job_(job), map_(map), comm_(comm), events_(events), exchange_(map, parameters, comm) {}

Result<std::int64_t> Checkpointing::begin(LossScale& lossScale) {
  if (job_.run.checkpoint.every == 0 && job_.resume.empty()) return 0;
  if (isRoot() && job_.run.checkpoint.every > 0) {
    if (auto checked = checkDirectory(); !checked) return checked.error();
  }
  if (auto connected = exchange_.connect(); !connected) return connected.error();
  return job_.resume.empty() ? Result<std::int64_t>(0) : resume(lossScale);
}

std::filesystem::path Checkpointing::directory() const {
  return job_.run.checkpoint.directory.empty() ? job_.folder / "checkpoints" : std::filesystem::path(job_.run.checkpoint.directory);
}

Result<void> Checkpointing::checkDirectory() const {
  const std::filesystem::path place = directory();
  std::error_code failure;
  std::filesystem::create_directories(place, failure);
  if (failure) return invalidInput("checkpoint directory " + place.string(), "cannot be made: " + failure.message(), "name another one");
  if (::access(place.c_str(), W_OK | X_OK) != 0)
    return invalidInput("checkpoint directory " + place.string(), std::string("cannot be written: ") + std::strerror(errno), "name another one");
  const std::filesystem::path from = std::filesystem::weakly_canonical(job_.resume, failure), into = std::filesystem::weakly_canonical(place, failure);
  const bool goesOn = !job_.resume.empty() && (from == into || from.parent_path() == into);
  if (!goesOn && !checkpointsIn(place).empty())
    return invalidInput("checkpoint directory " + place.string(), "holds checkpoints of another run", "go on from them (--resume), or name another directory");
  return {};
}

Result<std::int64_t> Checkpointing::resume(LossScale& lossScale) {
  std::optional<CheckpointReader> reader;
  std::int64_t step = 0;
  if (isRoot()) {
    auto opened = CheckpointReader::open(job_.resume);
    if (!opened) return opened.error();
    for (const Error& broken : opened->passedOver()) events_.warning(broken.text() + "; the one before it is taken");
    if (auto objection = opened->objection(job_.plan.model)) return *std::move(objection);
    step = opened->facts().step;
    if (step >= job_.run.steps)
      return invalidInput(opened->folder().string(), fmt::format("is of step {}, and the run is to end at step {}", step, job_.run.steps), "ask for more steps");
    warnOfDifferences(opened->facts());
    reader.emplace(*std::move(opened));
  }
  std::vector<int> everyone(static_cast<std::size_t>(comm_.worldSize()));
  std::iota(everyone.begin(), everyone.end(), 0);
  // What rank 0 has read, and nothing from the others: the sum tells everybody.
  const at::Tensor shared = at::zeros({4}, at::kDouble);
  auto* const numbers = shared.data_ptr<double>();
  if (isRoot()) {
    const LossScale scale = reader->facts().lossScale.value_or(lossScale);
    numbers[0] = static_cast<double>(step);
    numbers[1] = scale.value;
    numbers[2] = static_cast<double>(scale.goodSteps);
    numbers[3] = static_cast<double>(scale.skipped);
  }
  if (auto summed = comm_.allReduceSum(shared, everyone); !summed) return summed.error();
  step = static_cast<std::int64_t>(numbers[0]);
  if (job_.plan.training.precision == Precision::Fp16) lossScale.value = numbers[1];
  lossScale.goodSteps = static_cast<std::int64_t>(numbers[2]);
  lossScale.skipped = static_cast<std::int64_t>(numbers[3]);
  auto taken = exchange_.scatter([&](ModelState state, const TensorSpec& tensor) { return reader->read(state, tensor); });
  if (!taken) return taken.error();
  if (isRoot()) events_.info(fmt::format("goes on from step {} of {}", step, reader->folder().string()));
  return step;
}

/// What a resumed run may differ in, and would not be the same run for.
void Checkpointing::warnOfDifferences(const CheckpointFacts& saved) {
  if (saved.step == 0) return;  // of no run
  const auto differs = [&](const char* what, const auto& then, const auto& now) {
    if (then != now) events_.warning(fmt::format("the {} was {} when the checkpoint was written, and is {} now: the loss may jump", what, then, now));
  };
  differs("seed", saved.seed, job_.run.seed);
  differs("sequence length", saved.sequenceLength, job_.plan.training.sequenceLength);
  differs("global batch", saved.globalBatch, job_.plan.training.globalBatch);
  if (!saved.dataSha256.empty() && !job_.trainSha256.empty() && saved.dataSha256 != job_.trainSha256)
    events_.warning("the training data is not that of the checkpoint: the loss may jump");
}

CheckpointFacts Checkpointing::factsAt(std::int64_t step, const LossScale& lossScale) const {
  // Skipped steps matter at any precision: the moments know of fewer updates than there were steps.
  const bool hasScale = job_.plan.training.precision == Precision::Fp16 || lossScale.skipped > 0;
  return {.step = step,
          .model = job_.plan.model,
          .sequenceLength = job_.plan.training.sequenceLength,
          .globalBatch = job_.plan.training.globalBatch,
          .seed = job_.run.seed,
          .dataSha256 = job_.trainSha256,
          .runId = job_.runId,
          .planSha256 = job_.planSha256,
          .lossScale = hasScale ? std::optional(lossScale) : std::nullopt};
}

Result<void> Checkpointing::afterStep(std::int64_t finished, const LossScale& lossScale) {
  const Run::Checkpoint& wish = job_.run.checkpoint;
  if (writer_) {
    if (const auto written = writer_->poll()) tell(*written);
  }
  if (wish.every == 0 || (finished % wish.every != 0 && finished != job_.run.steps)) return {};
  if (writer_) tell(writer_->wait());
  if (isRoot()) {
    writing_ = finished;
    writer_.emplace(directory(), wish.keep, factsAt(finished, lossScale), map_.tensors);
  }
  return exchange_.gather([&](std::vector<float> values) { writer_->put(std::move(values)); });
}

Result<void> Checkpointing::finish() {
  if (writer_) tell(writer_->wait());
  return {};
}

void Checkpointing::tell(const Result<std::filesystem::path>& written) {
  if (written) events_.write("checkpoint", {{"step", writing_}, {"path", written->string()}});
  else events_.warning(fmt::format("the checkpoint of step {} was not written: {}", writing_, written.error().text()));
  writer_.reset();
}

}  // namespace evenkeel
