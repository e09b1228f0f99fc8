// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <vector>

#include "runtime/comm/comm.h"

namespace evenkeel {

/// How the failure of a collective leaves autograd. Caught where forward and backward are called.
struct CommFailure final : std::exception {
  explicit CommFailure(Error failure) : error(std::move(failure)) {}
  const char* what() const noexcept override { return error.what.c_str(); }
  Error error;
};

/// The tp group of one replica as one of its shards sees it. The residual stream is whole and has the same bits on every shard;
/// what lies between enter() and sum() is sharded. Without a group there is one shard and nothing is sent.
/// Collectives block; all shards call them in the same order. They throw CommFailure.
class TensorParallel {
 public:
  TensorParallel() = default;
  /// `ranks` by shard. sortedRanks() must be joined in `comm` before the first collective. `comm` outlives this.
  TensorParallel(Comm& comm, const std::vector<int>& ranks, int shard);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int shard() const { return shard_; }
  [[nodiscard]] const std::vector<int>& sortedRanks() const { return ranks_; }

  /// x itself; its gradient is the sum of the shards' gradients.
  [[nodiscard]] at::Tensor enter(const at::Tensor& x) const;
  /// The sum of the shards' x; its gradient is that of x on every shard.
  [[nodiscard]] at::Tensor sum(const at::Tensor& x) const;
  /// The largest of the shards' x, element by element. Has no gradient.
  [[nodiscard]] at::Tensor largest(const at::Tensor& x) const;

  /// sum() without a gradient, as a new tensor. Numbers of 16 bits are summed in fp32.
  [[nodiscard]] at::Tensor sumOf(const at::Tensor& x) const;

 private:
  Comm* comm_ = nullptr;
  std::vector<int> ranks_;
  int size_ = 1, shard_ = 0;
};

}  // namespace evenkeel
