// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/product_names.h"

#include <algorithm>
#include <array>
#include <set>

namespace evenkeel {
namespace {

struct ProductName {
  std::string_view words;  // of the product, in any order
  double leastGib = 0, mostGib = 1e9;
  std::string_view catalogue;
};

// As the drivers spell them. Memory as reported is a little below the round number.
constexpr std::array<ProductName, 31> kProducts = {{
    {"A100 SXM4 80GB", 0, 1e9, "A100-80-SXM"},
    {"A100 SXM 80GB", 0, 1e9, "A100-80-SXM"},
    {"A100 SXM4 40GB", 0, 1e9, "A100-40-SXM"},
    {"A100 SXM 40GB", 0, 1e9, "A100-40-SXM"},
    {"A100 80GB PCIE", 0, 1e9, "A100-80-PCIe"},
    {"A100 PCIE 40GB", 0, 1e9, "A100-40-PCIe"},
    {"A800 SXM4 80GB", 0, 1e9, "A800-80-SXM"},
    {"H100 80GB HBM3", 0, 1e9, "H100-80-SXM"},
    {"H100 PCIE", 60, 100, "H100-80-PCIe"},
    {"H200", 0, 1e9, "H200-SXM"},
    {"H20", 90, 100, "H20-96"},
    {"V100 SXM2 32GB", 0, 1e9, "V100-32-SXM2"},
    {"V100 SXM2 32GB LS", 0, 1e9, "V100-32-SXM2"},
    {"V100 SXM2 16GB", 0, 1e9, "V100-16-SXM2"},
    {"V100 PCIE 32GB", 0, 1e9, "V100-32-PCIe"},
    {"T4", 0, 1e9, "T4"},
    {"A10", 0, 1e9, "A10"},
    {"A40", 0, 1e9, "A40"},
    {"L40S", 0, 1e9, "L40S"},
    {"RTX 3090", 0, 1e9, "RTX3090"},
    {"RTX 4090", 0, 1e9, "RTX4090"},
    {"MI300X", 0, 1e9, "MI300X"},
    {"MI300X OAM", 0, 1e9, "MI300X"},
    {"MI250", 0, 70, "MI250-GCD"},
    {"MI250 MCM OAM AC MBA", 0, 70, "MI250-GCD"},
    {"910B2", 0, 1e9, "Ascend-910B2"},
    {"910B3", 0, 1e9, "Ascend-910B3"},
    {"910B4", 0, 1e9, "Ascend-910B4"},
    {"ASCEND 910B2", 0, 1e9, "Ascend-910B2"},
    {"ASCEND 910B3", 0, 1e9, "Ascend-910B3"},
    {"ASCEND 910B4", 0, 1e9, "Ascend-910B4"},
}};

/// Words in capitals, without those that only name the maker.
std::set<std::string> wordsOf(std::string_view text) {
  static const std::set<std::string> kMakers = {"NVIDIA", "TESLA", "GEFORCE", "AMD", "INSTINCT"};
  std::set<std::string> words;
  std::string word;
  const auto end = [&] {
    if (!word.empty() && !kMakers.contains(word)) words.insert(word);
    word.clear();
  };
  for (const char c : text) {
    const bool isLetter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (isLetter) word += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    else end();
  }
  end();
  return words;
}

}  // namespace

std::string catalogueNameOf(std::string_view product, Bytes memory) {
  const std::set<std::string> words = wordsOf(product);
  for (const ProductName& known : kProducts) {
    const bool fits = memory.value == 0 || (gib(memory) >= known.leastGib && gib(memory) <= known.mostGib);
    if (fits && words == wordsOf(known.words)) return std::string(known.catalogue);
  }
  return {};
}

}  // namespace evenkeel
