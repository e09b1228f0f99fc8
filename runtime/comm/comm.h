// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace at {
class Tensor;
}

namespace evenkeel {

/// A transfer that was started. Destroying it without waiting is allowed only when the process is about to end.
class Transfer {
 public:
  virtual ~Transfer() = default;
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  /// Until it is done, at most the peer timeout. Error::Code::Unreachable names the peer that is to blame.
  [[nodiscard]] virtual Result<void> wait() = 0;
};

/// What the training needs of the network. Ranks are those of the whole job. Tensors are contiguous; both ends know shape and
/// type from the plan. After the first error nothing but ending the process is meaningful.
/// A send may complete only once the peer has posted its receive: never wait for a send before posting one's own receives.
class Comm {
 public:
  virtual ~Comm() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int worldSize() const = 0;

  /// Messages of one pair, direction and tag arrive in order. The transfer keeps the tensor alive.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) = 0;
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) = 0;

  /// Connects the sorted `ranks`, of which this is one, for allReduce. All of them call it, sets in the same order.
  [[nodiscard]] virtual Result<void> join(const std::vector<int>& ranks) = 0;

  /// In place: the sum over `ranks`, the same bits on all of them and in every run. The set must have been joined.
  [[nodiscard]] virtual Result<void> allReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) = 0;
  /// The same with the largest in place of the sum.
  [[nodiscard]] virtual Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) = 0;
};

}  // namespace evenkeel
