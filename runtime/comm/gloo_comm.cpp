// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/gloo_comm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <chrono>
#include <map>
#include <numeric>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "core/base/words.h"

namespace evenkeel {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using WorkPointer = decltype(std::declval<c10d::ProcessGroupGloo&>().barrier());

constexpr int kProbeTag = 1 << 30;  // no message carries it
constexpr std::chrono::milliseconds kProbeTime{100};

class GlooComm final : public Comm {
 public:
  GlooComm(Rendezvous& rendezvous, GlooOptions options) : rendezvous_(rendezvous), options_(std::move(options)) {}

  Result<void> connect() {
    try {
      device_ = c10d::ProcessGroupGloo::createDeviceForHostname(options_.bindAddress);
    } catch (const std::exception& failure) {
      return invalidInput("EVENKEEL_TRAIN_ADDRESS", fmt::format("{} cannot be bound: {}", options_.bindAddress, failure.what()), "name an address of this node");
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
  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override { return start(tensor, peer, tag, false); }

  Result<void> join(const std::vector<int>& ranks) override {
    if (groups_.contains(ranks)) return {};
    const auto self = std::ranges::find(ranks, options_.rank);
    assert(self != ranks.end());
    try {
      auto options = c10d::ProcessGroupGloo::Options::create(peerTimeout());
      options->threads = 1;
      options->devices = {device_};
      const auto store = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&rendezvous_.store());
      const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(fmt::format("group/{}", fmt::join(ranks, ",")), store);
      groups_[ranks] = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, static_cast<int>(self - ranks.begin()), static_cast<int>(ranks.size()), options);
      return {};
    } catch (const std::exception& failure) {
      return blame(ranks, "connecting", failure.what());
    }
  }

  Result<void> allReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    assert(tensor.is_contiguous());
    try {
      std::vector<at::Tensor> tensors = {tensor};
      groups_.at(ranks)->allreduce(tensors)->wait(peerTimeout());
      return {};
    } catch (const std::exception& failure) {
      return blame(ranks, "adding up", failure.what());
    }
  }

 private:
  class GlooTransfer final : public Transfer {
   public:
    GlooTransfer(GlooComm& comm, WorkPointer work, int peer, bool isSend) : comm_(comm), work_(std::move(work)), peer_(peer), isSend_(isSend) {}
    GlooTransfer(GlooComm& comm, std::string failure, int peer, bool isSend) : comm_(comm), failure_(std::move(failure)), peer_(peer), isSend_(isSend) {}

    Result<void> wait() override {
      if (!failure_.empty()) return comm_.blame({peer_}, doing(), failure_);
      try {
        if (work_->wait(comm_.peerTimeout())) return {};
        return comm_.blame({peer_}, doing(), "aborted");
      } catch (const std::exception& failure) {
        return comm_.blame({peer_}, doing(), failure.what());
      }
    }

   private:
    const char* doing() const { return isSend_ ? "sending" : "receiving"; }
    GlooComm& comm_;
    WorkPointer work_;
    std::string failure_;  // it could not even be started
    int peer_;
    bool isSend_;
  };

  std::unique_ptr<Transfer> start(const at::Tensor& tensor, int peer, int tag, bool isSend) {
    assert(tensor.is_contiguous() && peer != options_.rank);
    try {
      std::vector<at::Tensor> tensors = {tensor};
      return std::make_unique<GlooTransfer>(*this, isSend ? world_->send(tensors, peer, tag) : world_->recv(tensors, peer, tag), peer, isSend);
    } catch (const std::exception& failure) {
      return std::make_unique<GlooTransfer>(*this, failure.what(), peer, isSend);
    }
  }

  std::chrono::milliseconds peerTimeout() const { return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds(options_.peerTimeout))); }

  /// True if the connection to a peer is closed: it has ended, or it has given us up.
  bool isGone(int peer) {
    if (!world_) return false;
    try {
      std::vector<at::Tensor> tensors = {at::empty({1})};
      world_->recv(tensors, peer, kProbeTag)->wait(kProbeTime);
      return false;
    } catch (const std::exception& failure) {
      return std::string_view(failure.what()).find("imed out") == std::string_view::npos;
    }
  }

  static std::string noteOf(int rank) { return fmt::format("left/{}", rank); }

  /// Of the peers that an operation needed, the one that is to blame, in words. The first whose connection is closed and who left
  /// no note; else the one that a note names; else all that did not answer.
  Error blame(const std::vector<int>& peers, const char* doing, const std::string& cause) {
    std::vector<std::string> silent;
    std::optional<int> named;
    for (const int peer : peers) {
      if (peer == options_.rank) continue;
      const auto note = parseNumber<int>(rendezvous_.peek(noteOf(peer)));
      if (note && *note != options_.rank) named = *note;
      else if (!note && isGone(peer)) return accuse(peer, fmt::format("ended or closed its connections while {} was {}", me(), doing), cause);
      silent.push_back(options_.rankNames[static_cast<std::size_t>(peer)]);
    }
    if (named) return accuse(*named, fmt::format("failed first, as its peers say, while {} was {}", me(), doing), cause);
    const int first = peers.front() == options_.rank ? peers.back() : peers.front();
    Error error = accuse(first, fmt::format("did not answer {} within {:g} s while it was {}", me(), options_.peerTimeout.value, doing), cause);
    error.where = fmt::format("{}", fmt::join(silent, ", "));
    return error;
  }

  std::string me() const { return options_.rankNames[static_cast<std::size_t>(options_.rank)]; }

  Error accuse(int culprit, std::string what, const std::string& cause) {
    (void)rendezvous_.publish(noteOf(options_.rank), std::to_string(culprit));  // the store may be gone too
    const std::string detail = cause.substr(0, cause.find('\n'));
    return unreachable(options_.rankNames[static_cast<std::size_t>(culprit)], fmt::format("{} ({})", what, detail));
  }

  Rendezvous& rendezvous_;
  GlooOptions options_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<int> everyone_;
  std::map<std::vector<int>, Group> groups_;
  Group world_;
};

}  // namespace

Result<std::unique_ptr<Comm>> connectGloo(Rendezvous& rendezvous, GlooOptions options) {
  auto comm = std::make_unique<GlooComm>(rendezvous, std::move(options));
  if (auto connected = comm->connect(); !connected) return connected.error();
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace evenkeel
