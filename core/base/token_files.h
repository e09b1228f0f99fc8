// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// How the tokens of training data are stored, little-endian. Text is bytes, one token each.
enum class TokenType { Uint8, Uint16, Int16, Int32, Int64 };
inline constexpr std::array<std::pair<std::string_view, TokenType>, 5> kTokenTypes = {{{"uint8", TokenType::Uint8},
                                                                                       {"uint16", TokenType::Uint16},
                                                                                       {"int16", TokenType::Int16},
                                                                                       {"int32", TokenType::Int32},
                                                                                       {"int64", TokenType::Int64}}};
[[nodiscard]] std::string_view name(TokenType type);
[[nodiscard]] int bytesOf(TokenType type);
/// The token at `bytes`.
[[nodiscard]] std::int64_t tokenAt(const std::uint8_t* bytes, TokenType type);

/// A pair NAME.bin and NAME.idx of Megatron-LM ("MMIDIDX", version 1): all tokens one after the other, and what they are.
struct TokenFiles {
  std::filesystem::path bin, idx;
  TokenType type = TokenType::Uint16;
  std::int64_t tokens = 0, sequences = 0, documents = 0;
};

/// The pair that a person means by NAME, NAME.bin or NAME.idx, also where only half of it is there; nothing where there are no such files.
[[nodiscard]] std::optional<TokenFiles> tokenFilesNamed(const std::string& text);

/// Reads the index and compares it with the tokens' file. Says in words what is wrong (Megatron-LM #81, gpt-neox #1329, lm-engine #53): no such file, another
/// format or version, kinds of numbers that are no tokens, cut off or longer than it says, sequences that do not follow each other or do not fill the other
/// file, documents that do not rise. Reads the index once, in pieces; not the tokens.
[[nodiscard]] Result<TokenFiles> openTokenFiles(const TokenFiles& named);

/// The index of a pair with these sequence lengths, in tokens; every sequence is a document.
[[nodiscard]] std::string tokenIndex(TokenType type, const std::vector<std::int32_t>& lengths);

}  // namespace evenkeel
