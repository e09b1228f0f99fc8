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

TokenSamples::TokenSamples(std::filesystem::path file, int descriptor, std::int64_t bytes, const Options& options)
    : file_(std::move(file)), descriptor_(descriptor), tokens_(bytes / bytesOf(options.type)), options_(options), random_(options.seed, "samples") {}

TokenSamples::TokenSamples(TokenSamples&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      tokens_(other.tokens_),
      options_(other.options_),
      random_(other.random_) {}

TokenSamples::~TokenSamples() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<TokenSamples> TokenSamples::open(const std::filesystem::path& file, const Options& options) {
  assert(options.sequenceLength >= 1 && options.vocab >= 1);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return invalidInput(file.string(), fmt::format("cannot be read: {}", std::strerror(errno)), "name a file of training data");
  struct stat status {};
  const bool isFile = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const std::int64_t end = isFile ? static_cast<std::int64_t>(status.st_size) : 0;
  const std::int64_t bytes = std::min(end, options.last.value_or(end)) - options.first;
  TokenSamples samples(file, descriptor, bytes, options);
  if (!isFile) return invalidInput(file.string(), "is no regular file", "name a file of training data");
  const int width = bytesOf(options.type);
  if (bytes % width != 0)
    return invalidInput(file.string(), fmt::format("has {} bytes, no whole number of tokens of {} bytes", bytes, width), "name a file of whole tokens");
  const std::int64_t window = options.sequenceLength + 1;
  if (samples.tokens_ < window) {
    return invalidInput(file.string(),
                        fmt::format("has {} tokens, fewer than the {} of one sample (sequence_length + 1)", samples.tokens_, window),
                        "give more data or train shorter sequences");
  }
  return samples;
}

std::int64_t TokenSamples::positionOf(std::int64_t step, std::int64_t sample) const {
  assert(step >= 0 && sample >= 0 && sample < kMaxGlobalBatch);
  const auto index =
      static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(kMaxGlobalBatch) + static_cast<std::uint64_t>(sample);
  return static_cast<std::int64_t>(random_.below(index, static_cast<std::uint64_t>(tokens_ - options_.sequenceLength)));
}

Result<void> TokenSamples::read(std::int64_t step, std::int64_t sample, std::span<std::int64_t> window) const {
  assert(static_cast<std::int64_t>(window.size()) == options_.sequenceLength + 1);
  const auto width = static_cast<std::size_t>(bytesOf(options_.type));
  const std::int64_t position = positionOf(step, sample);
  std::vector<std::uint8_t> bytes(window.size() * width);
  if (auto done = readAt(options_.first + position * static_cast<std::int64_t>(width), bytes); !done) return done;
  for (std::size_t i = 0; i < window.size(); ++i) {
    window[i] = tokenAt(bytes.data() + i * width, options_.type);
    if (window[i] >= 0 && window[i] < options_.vocab) continue;
    return invalidInput(file_.string(),
                        fmt::format("token {} is {}, outside of the model's vocabulary of {}", position + static_cast<std::int64_t>(i), window[i], options_.vocab),
                        "train the model that the tokens were made for; text needs a vocabulary of 256");
  }
  return {};
}

Result<void> TokenSamples::readAt(std::int64_t byte, std::span<std::uint8_t> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + done, bytes.size() - done, byte + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(file_.string(), fmt::format("cannot be read any more: {}", std::strerror(errno)));
    if (count == 0) return failed(file_.string(), fmt::format("became shorter than {} tokens while it was trained on", tokens_));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace evenkeel
