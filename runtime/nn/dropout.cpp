// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/dropout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>

#include "core/base/random.h"

namespace evenkeel {
namespace {

constexpr std::int64_t kWords = 4;  // of 32 bits in a block of the generator: one an element

/// Which words of the generator decide about the elements that x holds.
struct Draw {
  CounterRandom random;
  std::int64_t samples = 1, firstSample = 0;
  std::int64_t first = 0, elements = 1;  // of each sample
  std::int64_t blocks = 1;               // of a whole sample
};

void keepByLoop(const Draw& draw, std::uint64_t dropped, const at::Tensor& mask) {
  bool* keep = mask.data_ptr<bool>();
  for (std::int64_t sample = draw.firstSample; sample < draw.firstSample + draw.samples; ++sample) {
    std::array<std::uint32_t, kWords> words{};
    std::int64_t known = -1;
    for (std::int64_t element = draw.first; element < draw.first + draw.elements; ++element) {
      if (const std::int64_t block = element / kWords; block != known) {
        words = draw.random.block(static_cast<std::uint64_t>(sample * draw.blocks + block));
        known = block;
      }
      *keep++ = words[static_cast<std::size_t>(element % kWords)] >= dropped;
    }
  }
}

constexpr std::int64_t kLow = 0xFFFFFFFF;

at::Tensor low(const at::Tensor& x) { return x.bitwise_and(kLow); }
at::Tensor high(const at::Tensor& x) { return at::bitwise_right_shift(x, 32).bitwise_and_(kLow); }

/// philox() of core/base/random.h on integers of 64 bits, of which products take the lower ones, as unsigned numbers do.
at::Tensor keepByTensors(const Draw& draw, std::uint64_t dropped, const at::TensorOptions& options) {
  constexpr std::int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kStep0 = 0x9E3779B9U, kStep1 = 0xBB67AE85U;
  const std::int64_t firstBlock = draw.first / kWords, lastBlock = (draw.first + draw.elements + kWords - 1) / kWords;
  const at::Tensor index = (at::arange(draw.firstSample, draw.firstSample + draw.samples, options) * draw.blocks).unsqueeze(1) +
                           at::arange(firstBlock, lastBlock, options).unsqueeze(0);
  const auto stream = static_cast<std::int64_t>(draw.random.stream());
  std::array<at::Tensor, 4> counter = {low(index), high(index), at::full_like(index, stream & kLow),
                                       at::full_like(index, (stream >> 32) & kLow)};
  std::array<std::uint32_t, 2> key = draw.random.key();
  for (int round = 0; round < 10; ++round) {
    const at::Tensor product0 = counter[0] * kMultiplier0, product1 = counter[2] * kMultiplier1;
    counter = {high(product1).bitwise_xor_(counter[1]).bitwise_xor_(static_cast<std::int64_t>(key[0])), low(product1),
               high(product0).bitwise_xor_(counter[3]).bitwise_xor_(static_cast<std::int64_t>(key[1])), low(product0)};
    key[0] += kStep0;
    key[1] += kStep1;
  }
  const at::Tensor words = at::stack({counter[0], counter[1], counter[2], counter[3]}, -1).flatten(1);
  return words.narrow(1, draw.first % kWords, draw.elements).ge(static_cast<std::int64_t>(dropped));
}

}  // namespace

at::Tensor drop(const at::Tensor& x, const Dropout& dropout, Op op, int layer, const Batch& batch, const DropoutPart& part) {
  const auto dropped = static_cast<std::uint64_t>(dropout.probability * 0x1p32);  // words below it
  const Draw draw{.random = CounterRandom(dropout.seed, fmt::format("dropout/{}/{}/{}", name(op), layer, batch.step)),
                  .samples = part.samples,
                  .firstSample = batch.firstSample,
                  .first = part.first,
                  .elements = x.numel() / part.samples,
                  .blocks = (part.perSample + kWords - 1) / kWords};
  at::Tensor mask;
  if (dropout.byTensors) {
    mask = keepByTensors(draw, dropped, x.options().dtype(at::kLong).requires_grad(false)).view(x.sizes());
  } else {
    mask = at::empty(x.sizes(), at::kBool);
    keepByLoop(draw, dropped, mask);
  }
  return x * mask * (1.0 / (1.0 - dropout.probability));
}

}  // namespace evenkeel
