// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/base/token_files.h"
#include "core/plan/block_map.h"

namespace evenkeel {

/// The samples [first, first + count) of the global batch of every iteration.
struct SampleRange {
  std::int64_t first = 0;
  int count = 0;
  bool operator==(const SampleRange&) const = default;
};

/// Which samples micro-batch m of a pipeline trains: pipelines take the global batch in the order of the plan, each its local
/// batch, each micro-batch the next of them. Every sample belongs to exactly one micro-batch.
[[nodiscard]] SampleRange samplesOfMicroBatch(const Plan& plan, std::size_t pipeline, std::int64_t microBatch);
/// Which of them the replica of a rank trains: replicas take the samples of a micro-batch in order, each its share. Maybe none.
[[nodiscard]] SampleRange samplesOfReplica(const Plan& plan, const RankPlace& place, std::int64_t microBatch);

/// Training data: the tokens of one file, or of a part of it. A sample is a window of sequenceLength + 1 tokens at a random place
/// (with replacement): inputs are all but its last token, targets all but its first. Which window sample i of step t is depends on
/// (seed, t, i) only.
class TokenSamples {
 public:
  struct Options {
    std::int64_t sequenceLength = 0;
    std::int64_t vocab = 256;  // real vocabulary: tokens at and above it are errors
    std::uint64_t seed = 1;
    std::int64_t first = 0;                 // byte of the file at which the data begins
    std::optional<std::int64_t> last = {};  // byte behind them; nothing: the end of the file
    TokenType type = TokenType::Uint8;      // text: every byte is a token
  };
  /// Fails when the file cannot be read, holds no whole number of tokens, or is shorter than one window.
  [[nodiscard]] static Result<TokenSamples> open(const std::filesystem::path& file, const Options& options);

  TokenSamples(TokenSamples&& other) noexcept;
  TokenSamples& operator=(TokenSamples&&) = delete;
  ~TokenSamples();

  /// Of the data.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Position of the first token of sample `sample` (0-based) of step `step` (0-based).
  [[nodiscard]] std::int64_t positionOf(std::int64_t step, std::int64_t sample) const;
  /// Reads that window; fails on a token outside of the vocabulary. `window` has sequenceLength + 1 tokens.
  [[nodiscard]] Result<void> read(std::int64_t step, std::int64_t sample, std::span<std::int64_t> window) const;

 private:
  TokenSamples(std::filesystem::path file, int descriptor, std::int64_t bytes, const Options& options);
  [[nodiscard]] Result<void> readAt(std::int64_t byte, std::span<std::uint8_t> bytes) const;

  std::filesystem::path file_;
  int descriptor_;
  std::int64_t tokens_;  // from options_.first on
  Options options_;
  CounterRandom random_;
};

}  // namespace evenkeel
