// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/precision.h"

#include <array>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::array<std::pair<std::string_view, Precision>, 3> kPrecisions = {
    {{"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}, {"fp16", Precision::Fp16}}};

}  // namespace

std::span<const std::pair<std::string_view, Precision>> precisionWords() { return kPrecisions; }
std::string_view name(Precision precision) { return wordOf(kPrecisions, precision); }
int bytesOf(Precision precision) { return precision == Precision::Fp32 ? 4 : 2; }

}  // namespace evenkeel
