// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/sha256.h"
#include "runtime/checkpoint/checkpoint_files.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileBytes = std::int64_t{1} << 30U;        // of a file, as far as whole tensors allow
constexpr std::size_t kWaitingElements = std::size_t{1} << 28U;    // handed over and not yet written: a gibibyte

/// One file and the tensors that it will hold.
struct PlannedFile {
  std::string name;
  ModelState state = ModelState::Weights;
  std::vector<StoredTensor> tensors;
};

std::string_view stem(ModelState state) {
  switch (state) {
    case ModelState::Weights: return "model";
    case ModelState::FirstMoments: return "first_moment";
    case ModelState::SecondMoments: break;
  }
  return "second_moment";
}

std::vector<PlannedFile> plannedFiles(const std::vector<TensorSpec>& tensors, bool hasMoments) {
  std::vector<PlannedFile> files;
  for (const ModelState state : kModelStates) {
    if (state != ModelState::Weights && !hasMoments) break;
    const std::size_t first = files.size();
    std::int64_t bytes = 0;
    for (const TensorSpec& tensor : tensors) {
      const std::int64_t size = tensor.elements() * static_cast<std::int64_t>(sizeof(float));
      if (files.size() == first || (bytes > 0 && bytes + size > kFileBytes)) {
        files.push_back({{}, state, {}});
        bytes = 0;
      }
      files.back().tensors.push_back({.name = storedName(state, tensor), .type = "F32", .shape = tensor.shape, .first = bytes, .last = bytes + size});
      bytes += size;
    }
    const std::size_t count = files.size() - first;
    for (std::size_t i = 0; i < count; ++i) files[first + i].name = fmt::format("{}-{:05}-of-{:05}.safetensors", stem(state), i + 1, count);
  }
  return files;
}

/// A file that is being written: its bytes, their sum, and the first thing that went wrong.
class SummedFile {
 public:
  explicit SummedFile(const fs::path& file) : file_(file), descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) remember("open");
  }
  SummedFile(const SummedFile&) = delete;
  SummedFile& operator=(const SummedFile&) = delete;
  ~SummedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void write(std::string_view bytes) {
    sum_.update(bytes);
    while (!failure_ && !bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return remember("write");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  /// Flushed to the disk; the sum of all that was written.
  Result<std::string> close() {
    if (!failure_ && ::fsync(descriptor_) != 0) remember("flush");
    if (!failure_ && ::close(std::exchange(descriptor_, -1)) != 0) remember("close");
    if (failure_) return *failure_;
    return sum_.finish();
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void remember(const char* step) { failure_ = failed(file_.string(), fmt::format("cannot be written ({}: {})", step, std::strerror(errno))); }

  fs::path file_;
  int descriptor_;
  Sha256 sum_;
  std::optional<Error> failure_;
};

std::string megabytes(std::uintmax_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

/// Those of the way to a folder that are not there yet, the innermost first.
std::vector<fs::path> missingFolders(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> missing;
  for (fs::path at = fs::absolute(folder, ignored).lexically_normal(); at.has_relative_path() && !fs::exists(at, ignored); at = at.parent_path()) missing.push_back(at);
  return missing;
}

void flushFolder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string storedName(ModelState state, const TensorSpec& tensor) {
  return state == ModelState::Weights ? tensor.name : std::string(stem(state)) + "." + tensor.name;
}

class CheckpointWriter::Work {
 public:
  Work(fs::path directory, int keep, CheckpointFacts facts, const std::vector<TensorSpec>& tensors)
      : directory_(std::move(directory)), keep_(keep), facts_(std::move(facts)), files_(plannedFiles(tensors, facts_.step > 0)), thread_([this](const std::stop_token& stop) { write(stop); }) {}

  void put(std::vector<float> values) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result_.has_value() || waiting_ < kWaitingElements; });
    if (result_) return;  // it has failed
    waiting_ += values.size();
    queue_.push_back(std::move(values));
    changed_.notify_all();
  }
  std::optional<Result<fs::path>> poll() {
    const std::lock_guard lock(mutex_);
    return result_;
  }
  Result<fs::path> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result_.has_value(); });
    return *result_;
  }

 private:
  void write(const std::stop_token& stop) {
    const fs::path place = directory_ / fmt::format("step-{:010}", facts_.step);
    const fs::path part = fs::path(place.string() + ".part");
    const std::vector<fs::path> made = missingFolders(directory_);
    auto written = writeAll(part, stop);
    if (written) written = putInPlace(part, place);
    std::optional<Error> failure;
    if (written) {
      removeOlderThan(place);
    } else {
      failure = written.error();
      std::error_code ignored;
      fs::remove_all(part, ignored);
      failure->remedy = wayOut();
      for (const fs::path& folder : made) fs::remove(folder, ignored);  // what others have put something into stays
    }
    const std::lock_guard lock(mutex_);
    if (failure) result_.emplace(*std::move(failure));
    else result_.emplace(place);
    queue_.clear();
    changed_.notify_all();
  }

  Result<void> writeAll(const fs::path& part, const std::stop_token& stop) {
    std::error_code failure;
    fs::create_directories(directory_, failure);
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_, failure)) {  // of runs that were killed
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-") && name.ends_with(".part")) fs::remove_all(entry.path(), failure);
    }
    if (!failure) fs::create_directory(part, failure);
    if (failure) return failed(part.string(), failure.message());
    fs::permissions(part, fs::perms::owner_all, failure);
    Json list = Json::array();
    Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
    for (const PlannedFile& planned : files_) {
      SummedFile file(part / planned.name);
      file.write(safetensorsHeader(planned.tensors, {{"format", "pt"}, {"step", std::to_string(facts_.step)}}));
      for (const StoredTensor& tensor : planned.tensors) {
        const auto values = next(stop);
        if (!values) return failed(part.string(), "was given up");
        file.write({reinterpret_cast<const char*>(values->data()), values->size() * sizeof(float)});
        if (file.failure()) return *file.failure();
        if (planned.state == ModelState::Weights) index["weight_map"][tensor.name] = planned.name;
      }
      const auto sum = file.close();
      if (!sum) return sum.error();
      list.push_back({{"name", planned.name}, {"sha256", *sum}});
    }
    const std::string indexText = prettyText(index);
    list.push_back({{"name", "model.safetensors.index.json"}, {"sha256", sha256(indexText)}});
    if (auto written = writeFileAtomically(part / "model.safetensors.index.json", indexText, true); !written) return written;
    return writeFileAtomically(part / "checkpoint.json", prettyText(jsonOf(std::move(list))), true);
  }

  /// Of a checkpoint that could not be written, once nothing is left of it: what its disk lacks, and what there is.
  [[nodiscard]] std::string wayOut() const {
    std::uintmax_t needed = 0;
    for (const PlannedFile& file : files_) needed += static_cast<std::uintmax_t>(file.tensors.back().last);
    std::error_code failure;
    const fs::space_info space = fs::space(directory_, failure);
    std::string text;
    if (!failure && space.available < needed)
      text = fmt::format("it needs {} and {} are free there: make room, or name another folder", megabytes(needed), megabytes(space.available));
    if (!checkpointsIn(directory_).empty()) text += text.empty() ? "the checkpoints before it are whole" : "; the checkpoints before it are whole";
    return text;
  }

  [[nodiscard]] Json jsonOf(Json files) const {
    Json facts = {{"format", kCheckpointFormat},        {"step", facts_.step},
                  {"model", toJson(facts_.model)},      {"sequence_length", facts_.sequenceLength},
                  {"global_batch", facts_.globalBatch}, {"seed", facts_.seed},
                  {"data_sha256", facts_.dataSha256},   {"run", facts_.runId},
                  {"plan_sha256", facts_.planSha256},   {"files", std::move(files)}};
    if (facts_.lossScale)
      facts["loss_scale"] = {{"value", facts_.lossScale->value},
                             {"good_steps", facts_.lossScale->goodSteps},
                             {"skipped", facts_.lossScale->skipped}};
    return facts;
  }

  [[nodiscard]] Result<void> putInPlace(const fs::path& part, const fs::path& place) const {
    flushFolder(part);
    std::error_code failure;
    fs::remove_all(place, failure);  // the same step again, after a resume from before it
    if (!failure) fs::rename(part, place, failure);
    if (failure) return failed(place.string(), failure.message());
    flushFolder(directory_);
    return {};
  }

  /// Of this checkpoint and those before it the newest stay. What is of a later step is another run's, or was given up by going back.
  void removeOlderThan(const fs::path& place) const {
    std::error_code ignored;
    int kept = 0;
    for (const fs::path& folder : checkpointsIn(directory_)) {
      if (folder.filename().string() > place.filename().string() || ++kept <= keep_) continue;
      if (fs::exists(folder / "checkpoint.json", ignored)) fs::remove_all(folder, ignored);
    }
  }

  std::optional<std::vector<float>> next(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !queue_.empty(); })) return std::nullopt;
    std::vector<float> values = std::move(queue_.front());
    queue_.pop_front();
    waiting_ -= values.size();
    changed_.notify_all();
    return values;
  }

  fs::path directory_;
  int keep_;
  CheckpointFacts facts_;
  std::vector<PlannedFile> files_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::vector<float>> queue_;
  std::size_t waiting_ = 0;  // elements in the queue
  std::optional<Result<fs::path>> result_;
  std::jthread thread_;  // last: it uses all the others, and is joined first
};

CheckpointWriter::CheckpointWriter(fs::path directory, int keep, CheckpointFacts facts, std::vector<TensorSpec> tensors)
    : work_(std::make_unique<Work>(std::move(directory), keep, std::move(facts), tensors)) {}
CheckpointWriter::~CheckpointWriter() = default;
void CheckpointWriter::put(std::vector<float> values) { work_->put(std::move(values)); }
std::optional<Result<fs::path>> CheckpointWriter::poll() { return work_->poll(); }
Result<fs::path> CheckpointWriter::wait() { return work_->wait(); }

}  // namespace evenkeel
