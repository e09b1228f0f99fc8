// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <compare>
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

/// What messages of one kind take from one rank to another: they arrive in the order in which they were sent.
struct Line {
  int from = 0, to = 0, tag = 0;
  auto operator<=>(const Line&) const = default;
};

/// What the training needs of the network. Ranks are those of the whole job. Tensors are contiguous; both ends know shape and
/// type from the plan. After the first error nothing but ending the process is meaningful.
/// A send may complete only once the peer has posted its receive: never wait for a send before posting one's own receives.
class Comm {
 public:
  virtual ~Comm() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int worldSize() const = 0;

  /// Connects the lines of this rank that tensors of the model will take, before the first of them. Both ends of a line name it. Every
  /// rank opens its own in their order, so that no two wait for each other.
  [[nodiscard]] virtual Result<void> open(std::vector<Line> lines) {
    (void)lines;  // most networks connect whoever comes
    return {};
  }
  /// Messages of one line arrive in order. The transfer keeps the tensor alive.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) = 0;
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) = 0;

  /// Connects the sorted `ranks`, of which this is one, for allReduce. All of them call it, sets in the same order.
  [[nodiscard]] virtual Result<void> join(const std::vector<int>& ranks) = 0;

  /// In place: the sum over `ranks`, the same bits on all of them and in every run. The set must have been joined. Those of one
  /// set are started in the same order by all its ranks.
  [[nodiscard]] virtual std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) = 0;
  [[nodiscard]] Result<void> allReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) {
    return startAllReduceSum(tensor, ranks)->wait();
  }
  /// As allReduceSum() with the largest in place of the sum.
  [[nodiscard]] virtual Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) = 0;
};

}  // namespace evenkeel
