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

#include "core/base/words.h"
#include "runtime/comm/wait_watch.h"

namespace evenkeel {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using WorkPointer = decltype(std::declval<c10d::ProcessGroupGloo&>().barrier());

constexpr int kProbeTag = 1 << 30;  // no message carries it
constexpr std::chrono::milliseconds kProbeTime{100};
constexpr Seconds kPatience{1};  // for the notes of peers that are ending too
constexpr Seconds kGrace{5};     // for what has a deadline of its own to keep it

class GlooComm final : public Comm {
 public:
  GlooComm(Rendezvous& rendezvous, PeerNotes notes, GlooOptions options)
      : rendezvous_(rendezvous),
        notes_(std::move(notes)),
        options_(std::move(options)),
        watch_({.longAfter = options_.peerTimeout * 0.5,
                .stuckAfter = options_.peerTimeout * 2.0 + kGrace,
                .onLong = [this](const std::vector<int>& peers) { notes_.waitingFor(peers); },
                .onLongOver = [this] { notes_.noLongerWaiting(); },
                .onStuck =
                    [this](const std::vector<int>& peers) {
                      options_.onStuck(unreachable(
                          namesOf(peers), fmt::format("{} waits although its deadline has long passed", nameOf(options_.rank))));
                    }}) {}

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
    return waitFor(ranks, "connecting", [&] {
      auto options = c10d::ProcessGroupGloo::Options::create(peerTimeout());
      options->threads = 1;
      options->devices = {device_};
      const auto store = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&rendezvous_.store());
      const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(fmt::format("group/{}", fmt::join(ranks, ",")), store);
      groups_[ranks] = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, static_cast<int>(self - ranks.begin()),
                                                                   static_cast<int>(ranks.size()), options);
    });
  }

  Result<void> allReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return allReduce(tensor, ranks, c10d::ReduceOp::SUM, "adding up");
  }
  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    return allReduce(tensor, ranks, c10d::ReduceOp::MAX, "comparing");
  }

 private:
  class GlooTransfer final : public Transfer {
   public:
    GlooTransfer(GlooComm& comm, WorkPointer work, int peer, bool isSend)
        : comm_(comm), work_(std::move(work)), peer_(peer), isSend_(isSend) {}
    GlooTransfer(GlooComm& comm, std::string failure, int peer, bool isSend)
        : comm_(comm), failure_(std::move(failure)), peer_(peer), isSend_(isSend) {}

    Result<void> wait() override {
      return comm_.waitFor({peer_}, isSend_ ? "sending" : "receiving", [&] {
        if (!failure_.empty()) throw std::runtime_error(failure_);
        if (!work_->wait(comm_.peerTimeout())) throw std::runtime_error("aborted");
      });
    }

   private:
    GlooComm& comm_;
    WorkPointer work_;
    std::string failure_;  // it could not even be started
    int peer_;
    bool isSend_;
  };

  Result<void> allReduce(const at::Tensor& tensor, const std::vector<int>& ranks, c10d::ReduceOp operation, const char* doing) {
    assert(tensor.is_contiguous());
    return waitFor(ranks, doing, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::AllreduceOptions options;
      options.reduceOp = operation;
      groups_.at(ranks)->allreduce(tensors, options)->wait(peerTimeout());
    });
  }

  std::unique_ptr<Transfer> start(const at::Tensor& tensor, int peer, int tag, bool isSend) {
    assert(tensor.is_contiguous() && peer != options_.rank);
    try {
      std::vector<at::Tensor> tensors = {tensor};
      return std::make_unique<GlooTransfer>(*this, isSend ? world_->send(tensors, peer, tag) : world_->recv(tensors, peer, tag),
                                            peer, isSend);
    } catch (const std::exception& failure) {
      return std::make_unique<GlooTransfer>(*this, failure.what(), peer, isSend);
    }
  }

  std::chrono::milliseconds peerTimeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds(options_.peerTimeout)));
  }

  /// Runs an operation that waits for `peers`. What it throws becomes an Error that names who is to blame.
  template <class Operation>
  Result<void> waitFor(const std::vector<int>& peers, const char* doing, const Operation& operation) {
    watch_.begin(peers);
    try {
      operation();
    } catch (const std::exception& failure) {
      watch_.giveUp();
      return blame(peers, doing, failure.what());
    }
    watch_.end();
    return {};
  }

  /// True if the connection to a peer is closed: it has ended, or it has given us up.
  bool isClosed(int peer) {
    if (!world_) return false;
    try {
      std::vector<at::Tensor> tensors = {at::empty({1})};
      world_->recv(tensors, peer, kProbeTag)->wait(kProbeTime);
      return false;
    } catch (const std::exception& failure) {
      return !isTimeout(failure.what());
    }
  }

  static bool isTimeout(const std::string& failure) {
    const std::string text = lowerCase(failure);
    return text.find("timed out") != std::string::npos || text.find("timeout") != std::string::npos;
  }

  std::string nameOf(int rank) const { return options_.rankNames[static_cast<std::size_t>(rank)]; }

  std::string namesOf(const std::vector<int>& ranks) const {
    std::vector<std::string> names;
    for (const int rank : ranks) {
      if (rank != options_.rank) names.push_back(nameOf(rank));
    }
    constexpr std::size_t kShown = 4;
    const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
    names.resize(names.size() - more);
    return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  }

  /// Who is to blame for the failure of an operation that needed `peers`: whoever, in the chain of those who wait for each other,
  /// waits for nobody; if connections were closed, only those whose is.
  Error blame(const std::vector<int>& peers, const char* doing, const std::string& failure) {
    // The store of the notes may hang like any other process.
    const auto giveUp = [&](const std::vector<int>& ranks) { options_.onStuck(unreachable(namesOf(ranks), failure)); };
    WaitWatch limit({.longAfter = kGrace, .stuckAfter = kGrace * 2.0, .onLong = giveUp, .onLongOver = [] {}, .onStuck = giveUp});
    limit.begin(peers);
    notes_.waitingFor(peers);
    std::vector<int> culprits = notes_.withoutNote(peers, kPatience);
    const bool isSilence = isTimeout(failure);
    if (!isSilence) {
      const auto start = SteadyClock::now();
      std::vector<int> closed;
      for (const int rank : culprits) {
        if (secondsSince(start) < kPatience && isClosed(rank)) closed.push_back(rank);
      }
      if (!closed.empty()) culprits = closed;
    }
    if (culprits.size() == 1) notes_.writeOff(culprits.front());
    if (culprits.empty()) culprits = peers;
    const std::string what =
        isSilence ? fmt::format("did not answer within {:g} s", options_.peerTimeout.value) : "ended or closed its connections";
    const std::string detail = failure.substr(0, failure.find('\n'));
    return unreachable(namesOf(culprits),
                       fmt::format("{}; noticed by {} while {} ({})", what, nameOf(options_.rank), doing, detail));
  }

  Rendezvous& rendezvous_;
  PeerNotes notes_;
  GlooOptions options_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<int> everyone_;
  std::map<std::vector<int>, Group> groups_;
  Group world_;
  WaitWatch watch_;  // last: its thread ends before what it uses
};

}  // namespace

Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, PeerNotes notes, GlooOptions options) {
  auto comm = std::make_unique<GlooComm>(rendezvous, std::move(notes), std::move(options));
  if (auto connected = comm->connect(); !connected) return connected.error();
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace evenkeel
