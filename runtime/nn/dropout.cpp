// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/dropout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/base/random.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kWords = 4;  // of 32 bits in a block of the generator: one an element

}  // namespace

at::Tensor drop(const at::Tensor& x, const Dropout& dropout, Op op, int layer, const Batch& batch, const DropoutPart& part) {
  const CounterRandom random(dropout.seed, fmt::format("dropout/{}/{}/{}", name(op), layer, batch.step));
  const auto dropped = static_cast<std::uint64_t>(dropout.probability * 0x1p32);  // words below it
  const std::int64_t elements = x.numel() / part.samples, blocks = (part.perSample + kWords - 1) / kWords;
  const at::Tensor mask = at::empty(x.sizes(), at::kBool);
  bool* keep = mask.data_ptr<bool>();
  for (std::int64_t sample = batch.firstSample; sample < batch.firstSample + part.samples; ++sample) {
    std::array<std::uint32_t, kWords> words{};
    std::int64_t known = -1;
    for (std::int64_t element = part.first; element < part.first + elements; ++element) {
      if (const std::int64_t block = element / kWords; block != known) {
        words = random.block(static_cast<std::uint64_t>(sample * blocks + block));
        known = block;
      }
      *keep++ = words[static_cast<std::size_t>(element % kWords)] >= dropped;
    }
  }
  return x * mask * (1.0 / (1.0 - dropout.probability));
}

}  // namespace evenkeel
