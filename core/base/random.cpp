// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"

#include <cmath>
#include <numbers>

namespace evenkeel {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

double unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32U) | low;
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

CounterRandom::CounterRandom(std::uint64_t seed, std::string_view stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}, stream_(fnv1a(stream)) {}

std::array<std::uint32_t, 4> CounterRandom::block(std::uint64_t index) const {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32U),
                 static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32U)},
                key_);
}

std::uint64_t CounterRandom::bits(std::uint64_t index) const {
  const auto words = block(index);
  return (static_cast<std::uint64_t>(words[0]) << 32U) | words[1];
}

double CounterRandom::uniform(std::uint64_t index) const {
  const auto words = block(index);
  return unit(words[0], words[1]);
}

double CounterRandom::normal(std::uint64_t index) const {
  const auto words = block(index);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(words[0], words[1])));  // 1 - u is never 0
  return radius * std::cos(2.0 * std::numbers::pi * unit(words[2], words[3]));
}

std::uint64_t CounterRandom::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64U);
}

}  // namespace evenkeel
