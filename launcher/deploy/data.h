// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/token_files.h"
#include "launcher/deploy/bundle.h"

namespace evenkeel {

/// The training data as one file of tokens, and behind them those to evaluate on. Of text every byte is a token.
struct PackedData {
  std::filesystem::path file;
  std::string sha256;
  std::uint64_t bytes = 0;       // of the file
  std::uint64_t trainBytes = 0;  // of them
  std::string trainSha256;       // of these alone: what tells one training text from another
  TokenType token = TokenType::Uint8;
  bool isText = true;
  std::int64_t leastToken = 0, greatestToken = 0;
};

inline constexpr std::uint64_t kMostDataBytes = std::uint64_t{4} << 30U;

/// The files that a person means by these names of files and folders, in the order in which packData joins them.
[[nodiscard]] Result<std::vector<std::filesystem::path>> textFilesNamed(const std::vector<std::string>& names);

/// Joins what a person named into one file under `cache` (data/SHA256, mode 0600): the names in their order, the files of a
/// folder by their relative paths in byte order, so that the same folder gives the same bytes everywhere. Regular files only; in
/// folders neither hidden ones (.git) nor links. A name for a pair of Megatron-LM (NAME.bin and NAME.idx) stands for its tokens;
/// all names then stand for such pairs with tokens of one type. Missing, unreadable, empty or more than kMostDataBytes: an Error
/// that says which.
[[nodiscard]] Result<PackedData> packData(const std::vector<std::string>& names, const std::filesystem::path& cache,
                                          const std::vector<std::string>& validationNames = {});

/// Why a model with a vocabulary of `vocab` cannot be trained on it; nothing if it can.
[[nodiscard]] std::optional<Error> objectionTo(const PackedData& data, std::int64_t vocab);

/// Whether there is something behind each of the names, as packData would find.
[[nodiscard]] Result<void> checkData(const std::vector<std::string>& names);

/// The packed file as something to deploy.
[[nodiscard]] Bundle bundleOf(const PackedData& data);
inline constexpr const char* kDataFile = "train.bytes";

}  // namespace evenkeel
