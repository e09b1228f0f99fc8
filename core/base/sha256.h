// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace evenkeel {

/// SHA-256 (FIPS 180-4), fed in pieces. Ours, because the agent and the worker must run on bare nodes without a crypto library.
class Sha256 {
 public:
  void update(std::string_view bytes);
  /// 64 lower-case hexadecimal digits. Ends the object's use.
  [[nodiscard]] std::string finish();

 private:
  void compress(const unsigned char* block);
  std::array<std::uint32_t, 8> state_{0x6a09e667U, 0xbb67ae85U, 0x3c6ef372U, 0xa54ff53aU,
                                      0x510e527fU, 0x9b05688cU, 0x1f83d9abU, 0x5be0cd19U};
  std::array<unsigned char, 64> buffer_{};
  std::size_t buffered_ = 0;
  std::uint64_t length_ = 0;
};

[[nodiscard]] std::string sha256(std::string_view bytes);

}  // namespace evenkeel
