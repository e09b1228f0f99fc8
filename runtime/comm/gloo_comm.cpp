// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/gloo_comm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <chrono>
#include <map>
#include <numeric>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace evenkeel {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using WorkPointer = decltype(std::declval<c10d::ProcessGroupGloo&>().barrier());

constexpr int kProbeTag = 1 << 30;  // no message carries it
constexpr std::chrono::milliseconds kProbeTime{100};

class GlooComm final : public Comm {
 public:
  GlooComm(Rendezvous& rendezvous, PeerWatch& watch, GlooOptions options)
      : rendezvous_(rendezvous), watch_(watch), options_(std::move(options)) {}

  Result<void> connect() {
    try {
      device_ = c10d::ProcessGroupGloo::createDeviceForHostname(options_.bindAddress);
    } catch (const std::exception& failure) {
      return invalidInput("EVENKEEL_TRAIN_ADDRESS", fmt::format("{} cannot be bound: {}", options_.bindAddress, failure.what()),
                          "name an address of this node");
    }
    everyone_.resize(static_cast<std::size_t>(options_.worldSize));
    std::iota(everyone_.begin(), everyone_.end(), 0);
    if (auto joined = join(everyone_); !joined) return joined;
    world_ = groups_.at(everyone_);
    watch_.askOfClosed([this](int peer) { return isClosed(peer); });
    return {};
  }

  int rank() const override { return options_.rank; }
  int worldSize() const override { return options_.worldSize; }

  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) override { return start(tensor, peer, tag, true); }
  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override {
    return start(tensor, peer, tag, false);
  }

  Result<void> join(const std::vector<int>& ranks) override {
    if (groups_.contains(ranks)) return {};
    const auto self = std::ranges::find(ranks, options_.rank);
    assert(self != ranks.end());
    return watch_.waitFor(ranks, "connecting", [&] {
      auto options = c10d::ProcessGroupGloo::Options::create(peerTimeout());
      options->threads = 1;
      options->devices = {device_};
      const auto store = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&rendezvous_.store());
      const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(fmt::format("group/{}", fmt::join(ranks, ",")), store);
      groups_[ranks] = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, static_cast<int>(self - ranks.begin()),
                                                                   static_cast<int>(ranks.size()), options);
    });
  }

  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return startAllReduce(tensor, ranks, c10d::ReduceOp::SUM, "adding up");
  }
  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return startAllReduce(tensor, ranks, c10d::ReduceOp::MAX, "comparing")->wait();
  }

 private:
  class GlooTransfer final : public Transfer {
   public:
    /// `doing`: a word for errors. Without work: it could not even be started, as `failure` says.
    GlooTransfer(GlooComm& comm, std::vector<int> peers, const char* doing, WorkPointer work, std::string failure)
        : comm_(comm), peers_(std::move(peers)), doing_(doing), work_(std::move(work)), failure_(std::move(failure)) {}

    Result<void> wait() override {
      return comm_.watch_.waitFor(peers_, doing_, [&] {
        if (!work_) throw std::runtime_error(failure_);
        if (!work_->wait(comm_.peerTimeout())) throw std::runtime_error("aborted");
      });
    }

   private:
    GlooComm& comm_;
    std::vector<int> peers_;
    const char* doing_;
    WorkPointer work_;
    std::string failure_;
  };

  template <class Begin>
  std::unique_ptr<Transfer> begin(std::vector<int> peers, const char* doing, const Begin& work) {
    try {
      return std::make_unique<GlooTransfer>(*this, std::move(peers), doing, work(), std::string());
    } catch (const std::exception& failure) {
      return std::make_unique<GlooTransfer>(*this, std::move(peers), doing, WorkPointer(), failure.what());
    }
  }

  std::unique_ptr<Transfer> start(const at::Tensor& tensor, int peer, int tag, bool isSend) {
    assert(tensor.is_contiguous() && peer != options_.rank);
    std::vector<at::Tensor> tensors = {tensor};
    return begin({peer}, isSend ? "sending" : "receiving",
                 [&] { return isSend ? world_->send(tensors, peer, tag) : world_->recv(tensors, peer, tag); });
  }

  std::unique_ptr<Transfer> startAllReduce(const at::Tensor& tensor, const std::vector<int>& ranks, c10d::ReduceOp operation,
                                           const char* doing) {
    assert(tensor.is_contiguous());
    return begin(ranks, doing, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::AllreduceOptions options;
      options.reduceOp = operation;
      return groups_.at(ranks)->allreduce(tensors, options);
    });
  }

  std::chrono::milliseconds peerTimeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds(watch_.peerTimeout())));
  }

  /// True if the connection to a peer is closed: it has ended, or it has given us up.
  bool isClosed(int peer) {
    try {
      std::vector<at::Tensor> tensors = {at::empty({1})};
      world_->recv(tensors, peer, kProbeTag)->wait(kProbeTime);
      return false;
    } catch (const std::exception& failure) {
      return !saysTimeout(failure.what());
    }
  }

  Rendezvous& rendezvous_;
  PeerWatch& watch_;
  GlooOptions options_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<int> everyone_;
  std::map<std::vector<int>, Group> groups_;
  Group world_;
};

}  // namespace

Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, PeerWatch& watch, GlooOptions options) {
  auto comm = std::make_unique<GlooComm>(rendezvous, watch, std::move(options));
  if (auto connected = comm->connect(); !connected) return connected.error();
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace evenkeel
