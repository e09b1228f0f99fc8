// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "runtime/cuda/cuda.h"

namespace evenkeel {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

constexpr int kSpins = 2000;  // polls without a pause: most transfers are over by then
constexpr std::chrono::microseconds kPause{50};

/// Threads of c10d would end the process when something takes long, without a word about who is to blame. Our waits have deadlines.
void silenceWatchdogs() {
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ENABLE_MONITORING",
                           "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_PROPAGATE_ERROR", "TORCH_NCCL_RETHROW_CUDA_ERRORS"})
    ::setenv(name, "0", 1);
}

/// A message takes a communicator of its sender, its receiver and its kind alone. In one for both directions two neighbours that
/// send at once would wait for each other; in one for all kinds both ends would have to post all kinds in one order.
class NcclComm final : public Comm {
 public:
  NcclComm(Rendezvous& rendezvous, PeerWatch& watch, int rank, int worldSize)
      : rendezvous_(rendezvous), watch_(watch), rank_(rank), worldSize_(worldSize) {
    silenceWatchdogs();
  }

  int rank() const override { return rank_; }
  int worldSize() const override { return worldSize_; }

  Result<void> open(std::vector<Line> lines) override {
    std::ranges::sort(lines);
    for (const Line& line : lines) {
      if (lines_.contains(line)) continue;
      const bool isSender = line.from == rank_;
      assert(isSender != (line.to == rank_));
      const int peer = isSender ? line.to : line.from;
      // NCCL connects with the first message, and each end waits for the other then.
      auto opened = watch_.waitFor({peer}, "connecting", [&] {
        const Group group = makeGroup(fmt::format("nccl/line/{}-{}-{}", line.from, line.to, line.tag), isSender ? 0 : 1, 2);
        std::vector<at::Tensor> tensors = {at::zeros({1}, at::device(at::kCUDA))};
        await(*(isSender ? group->send(tensors, 1, 0) : group->recv(tensors, 0, 0)));
        lines_[line] = group;
      });
      if (!opened) return opened;
    }
    return {};
  }

  Result<void> join(const std::vector<int>& ranks) override {
    if (sets_.contains(ranks)) return {};
    const auto self = std::ranges::find(ranks, rank_);
    assert(self != ranks.end());
    return watch_.waitFor(ranks, "connecting", [&] {
      const Group group = makeGroup(fmt::format("nccl/set/{}", fmt::join(ranks, ",")), static_cast<int>(self - ranks.begin()),
                                    static_cast<int>(ranks.size()));
      std::vector<at::Tensor> tensors = {at::zeros({1}, at::device(at::kCUDA))};
      await(*group->allreduce(tensors));
      sets_[ranks] = group;
    });
  }

  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) override {
    return begin({peer}, "sending", tensor, [&](auto& tensors) { return lines_.at({rank_, peer, tag})->send(tensors, 1, 0); });
  }
  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override {
    return begin({peer}, "receiving", tensor, [&](auto& tensors) { return lines_.at({peer, rank_, tag})->recv(tensors, 0, 0); });
  }

  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return startAllReduce(tensor, ranks, c10d::ReduceOp::SUM, "adding up");
  }
  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return startAllReduce(tensor, ranks, c10d::ReduceOp::MAX, "comparing")->wait();
  }

 private:
  class NcclTransfer final : public Transfer {
   public:
    /// Without work: it could not even be started, as `failure` says.
    NcclTransfer(NcclComm& comm, std::vector<int> peers, const char* doing, at::Tensor tensor, WorkPointer work, std::string failure)
        : comm_(comm), peers_(std::move(peers)), doing_(doing), tensor_(std::move(tensor)), work_(std::move(work)), failure_(std::move(failure)) {}

    Result<void> wait() override {
      return comm_.watch_.waitFor(peers_, doing_, [&] {
        if (!work_) throw std::runtime_error(failure_);
        comm_.await(*work_);
      });
    }

   private:
    NcclComm& comm_;
    std::vector<int> peers_;
    const char* doing_;
    at::Tensor tensor_;  // alive until it is done
    WorkPointer work_;
    std::string failure_;
  };

  template <class Begin>
  std::unique_ptr<Transfer> begin(std::vector<int> peers, const char* doing, const at::Tensor& tensor, const Begin& work) {
    assert(tensor.is_cuda() && tensor.is_contiguous());
    std::vector<at::Tensor> tensors = {tensor};
    try {
      return std::make_unique<NcclTransfer>(*this, std::move(peers), doing, tensor, work(tensors), std::string());
    } catch (const std::exception& failure) {
      return std::make_unique<NcclTransfer>(*this, std::move(peers), doing, tensor, WorkPointer(), failure.what());
    }
  }

  std::unique_ptr<Transfer> startAllReduce(const at::Tensor& tensor, const std::vector<int>& ranks, c10d::ReduceOp operation,
                                           const char* doing) {
    return begin(ranks, doing, tensor, [&](auto& tensors) {
      c10d::AllreduceOptions options;
      options.reduceOp = operation;
      return sets_.at(ranks)->allreduce(tensors, options);
    });
  }

  Group makeGroup(const std::string& name, int place, int size) {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds(watch_.peerTimeout())));
    const auto store = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&rendezvous_.store());
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>(name, store), place, size, options);
  }

  /// c10d's own wait only lets the stream wait, without a deadline.
  void await(c10d::Work& work) const {
    const auto start = SteadyClock::now();
    for (int poll = 0; !work.isCompleted(); ++poll) {  // also after an error of NCCL
      if (poll < kSpins) continue;
      if (secondsSince(start).value > watch_.peerTimeout().value) throw std::runtime_error("timed out in NCCL");
      std::this_thread::sleep_for(kPause);
    }
    if (const std::exception_ptr failure = work.exception()) std::rethrow_exception(failure);
    work.wait();  // the stream that computes comes after it
  }

  Rendezvous& rendezvous_;
  PeerWatch& watch_;
  int rank_, worldSize_;
  std::map<Line, Group> lines_;
  std::map<std::vector<int>, Group> sets_;
};

}  // namespace

Result<std::unique_ptr<Comm>> connectNccl(Rendezvous& rendezvous, PeerWatch& watch, int rank, int worldSize) {
  try {
    return std::unique_ptr<Comm>(std::make_unique<NcclComm>(rendezvous, watch, rank, worldSize));
  } catch (const std::exception& failure) {
    return failed("nccl", failure.what());
  }
}

}  // namespace evenkeel
