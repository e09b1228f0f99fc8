// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/samples.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace evenkeel {

SampleRange samplesOfMicroBatch(const Plan& plan, std::size_t pipeline, std::int64_t microBatch) {
  std::int64_t first = 0;
  for (std::size_t p = 0; p < pipeline; ++p) first += plan.pipelines[p].localBatch;
  const Pipeline& own = plan.pipelines[pipeline];
  return {first + microBatch * own.microBatch, own.samplesOf(microBatch)};
}

SampleRange samplesOfReplica(const Plan& plan, const RankPlace& place, std::int64_t microBatch) {
  SampleRange range = samplesOfMicroBatch(plan, place.pipeline, microBatch);
  const Pipeline& pipeline = plan.pipelines[place.pipeline];
  const std::vector<int> shares = replicaShares(pipeline.stages[place.stage], pipeline.microBatch, range.count);
  for (int replica = 0; replica < place.replica; ++replica) range.first += shares[static_cast<std::size_t>(replica)];
  range.count = shares[static_cast<std::size_t>(place.replica)];
  return range;
}

ByteSamples::ByteSamples(std::filesystem::path file, int descriptor, std::int64_t bytes, const Options& options)
    : file_(std::move(file)), descriptor_(descriptor), bytes_(bytes), options_(options), random_(options.seed, "samples") {}

ByteSamples::ByteSamples(ByteSamples&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      options_(other.options_),
      random_(other.random_) {}

ByteSamples::~ByteSamples() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<ByteSamples> ByteSamples::open(const std::filesystem::path& file, const Options& options) {
  assert(options.sequenceLength >= 1 && options.vocab >= 1);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return invalidInput(file.string(), fmt::format("cannot be read: {}", std::strerror(errno)), "name a file of training text");
  struct stat status {};
  const bool isFile = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const std::int64_t end = isFile ? static_cast<std::int64_t>(status.st_size) : 0;
  ByteSamples samples(file, descriptor, std::min(end, options.last.value_or(end)) - options.first, options);
  if (!isFile) return invalidInput(file.string(), "is no regular file", "name a file of training text");
  const std::int64_t window = options.sequenceLength + 1;
  if (samples.bytes_ < window) {
    return invalidInput(
        file.string(), fmt::format("has {} bytes, fewer than the {} of one sample (sequence_length + 1)", samples.bytes_, window),
        "give more text or train shorter sequences");
  }
  if (options.vocab < 256) {
    if (auto checked = samples.checkVocabulary(); !checked) return checked.error();
  }
  return samples;
}

std::int64_t ByteSamples::positionOf(std::int64_t step, std::int64_t sample) const {
  assert(step >= 0 && sample >= 0 && sample < kMaxGlobalBatch);
  const auto index =
      static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(kMaxGlobalBatch) + static_cast<std::uint64_t>(sample);
  return static_cast<std::int64_t>(random_.below(index, static_cast<std::uint64_t>(bytes_ - options_.sequenceLength)));
}

Result<void> ByteSamples::read(std::int64_t step, std::int64_t sample, std::span<std::uint8_t> window) const {
  assert(static_cast<std::int64_t>(window.size()) == options_.sequenceLength + 1);
  return readAt(positionOf(step, sample), window);
}

Result<void> ByteSamples::readAt(std::int64_t position, std::span<std::uint8_t> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                  options_.first + position + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(file_.string(), fmt::format("cannot be read any more: {}", std::strerror(errno)));
    if (count == 0) return failed(file_.string(), fmt::format("became shorter than {} bytes while it was trained on", bytes_));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> ByteSamples::checkVocabulary() const {
  std::vector<std::uint8_t> chunk(std::size_t{1} << 20U);
  for (std::int64_t position = 0; position < bytes_; position += static_cast<std::int64_t>(chunk.size())) {
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(chunk.size()), bytes_ - position));
    const std::span<std::uint8_t> part(chunk.data(), count);
    if (auto done = readAt(position, part); !done) return done;
    const auto outside = std::ranges::find_if(part, [&](std::uint8_t byte) { return byte >= options_.vocab; });
    if (outside == part.end()) continue;
    return invalidInput(file_.string(),
                        fmt::format("byte {} is {}, outside of the model's vocabulary of {}", position + (outside - part.begin()),
                                    *outside, options_.vocab),
                        "train a model with a vocabulary of 256 on bytes");
  }
  return {};
}

}  // namespace evenkeel
