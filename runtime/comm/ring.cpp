// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/ring.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cassert>

namespace evenkeel {
namespace {

constexpr int kRingTag = 3;  // after those of the pipelines

class Ring {
 public:
  Ring(Comm& comm, const at::Tensor& flat, const std::vector<int>& ranks)
      : comm_(comm), flat_(flat), ranks_(ranks), size_(ranks.size()) {
    assert(flat.is_contiguous() && flat.dim() == 1);
    place_ = static_cast<std::size_t>(std::ranges::find(ranks, comm.rank()) - ranks.begin());
    assert(place_ < size_);
  }

  /// The part that is `behind` places before ours.
  at::Tensor part(std::size_t behind) const {
    const FlatRange range = partOf(flat_.numel(), (place_ + size_ - behind % size_) % size_, size_);
    return flat_.narrow(0, range.first, range.size());
  }

  /// Sends to the next rank while it receives from the one before; nothing is sent of empty parts.
  Result<void> shift(const at::Tensor& sent, const at::Tensor& received) {
    std::unique_ptr<Transfer> receive, send;
    if (received.numel() > 0) receive = comm_.receive(received, ranks_[(place_ + size_ - 1) % size_], kRingTag);
    if (sent.numel() > 0) send = comm_.send(sent, ranks_[(place_ + 1) % size_], kRingTag);
    for (Transfer* const transfer : {receive.get(), send.get()}) {
      if (transfer == nullptr) continue;
      if (auto done = transfer->wait(); !done) return done;
    }
    return {};
  }

 private:
  Comm& comm_;
  const at::Tensor& flat_;
  const std::vector<int>& ranks_;
  std::size_t size_, place_ = 0;
};

}  // namespace

std::vector<Line> ringLines(const std::vector<int>& ranks, int rank) {
  const std::size_t size = ranks.size(), place = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  assert(place < size && size > 1);
  return {{rank, ranks[(place + 1) % size], kRingTag}, {ranks[(place + size - 1) % size], rank, kRingTag}};
}

FlatRange partOf(std::int64_t elements, std::size_t part, std::size_t parts) {
  assert(part < parts);
  const auto count = static_cast<std::int64_t>(parts), index = static_cast<std::int64_t>(part);
  const std::int64_t width = (elements + count - 1) / count;
  return {std::min(elements, index * width), std::min(elements, (index + 1) * width)};
}

Result<void> reduceScatterSum(Comm& comm, const at::Tensor& flat, const std::vector<int>& ranks) {
  Ring ring(comm, flat, ranks);
  for (std::size_t step = 1; step < ranks.size(); ++step) {
    const at::Tensor own = ring.part(step + 1), received = at::empty_like(own);
    if (auto done = ring.shift(ring.part(step), received); !done) return done;
    own.add_(received);
  }
  return {};
}

Result<void> allGather(Comm& comm, const at::Tensor& flat, const std::vector<int>& ranks) {
  Ring ring(comm, flat, ranks);
  for (std::size_t step = 0; step + 1 < ranks.size(); ++step) {
    if (auto done = ring.shift(ring.part(step), ring.part(step + 1)); !done) return done;
  }
  return {};
}

}  // namespace evenkeel
