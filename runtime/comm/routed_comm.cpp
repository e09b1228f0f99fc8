// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/routed_comm.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace evenkeel {
namespace {

/// A tensor of the same shape and type in the host's memory.
at::Tensor onHost(const at::Tensor& tensor) { return at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false)); }

at::Tensor copyOnHost(const at::Tensor& tensor) {
  const at::NoGradGuard noGrad;
  const at::Tensor copy = onHost(tensor);
  copy.copy_(tensor);
  return copy;
}

/// A transfer of a copy, which comes back to the card once it is done.
class StagedTransfer final : public Transfer {
 public:
  StagedTransfer(std::unique_ptr<Transfer> transfer, at::Tensor copy, at::Tensor target)
      : transfer_(std::move(transfer)), copy_(std::move(copy)), target_(std::move(target)) {}

  Result<void> wait() override {
    if (auto done = transfer_->wait(); !done) return done;
    const at::NoGradGuard noGrad;
    target_.copy_(copy_);
    return {};
  }

 private:
  std::unique_ptr<Transfer> transfer_;
  at::Tensor copy_, target_;
};

class RoutedComm final : public Comm {
 public:
  RoutedComm(std::unique_ptr<Comm> host, std::unique_ptr<Comm> cards, Routes routes)
      : host_(std::move(host)), cards_(std::move(cards)), routes_(std::move(routes)) {}

  int rank() const override { return host_->rank(); }
  int worldSize() const override { return host_->worldSize(); }

  Result<void> open(std::vector<Line> lines) override {
    std::vector<Line> mixed;
    for (const Line& line : lines) {
      if (!areCards({line.from, line.to})) mixed.push_back(line);
    }
    std::erase_if(lines, [&](const Line& line) { return !areCards({line.from, line.to}); });
    if (auto opened = host_->open(std::move(mixed)); !opened) return opened;
    return cards_->open(std::move(lines));
  }

  Result<void> join(const std::vector<int>& ranks) override { return areCards(ranks) ? cards_->join(ranks) : host_->join(ranks); }

  std::unique_ptr<Transfer> send(const at::Tensor& tensor, int peer, int tag) override {
    if (!routes_.isOnCard(tensor)) return host_->send(tensor, peer, tag);
    if (areCards({peer})) return cards_->send(tensor, peer, tag);
    return host_->send(copyOnHost(tensor), peer, tag);
  }

  std::unique_ptr<Transfer> receive(const at::Tensor& tensor, int peer, int tag) override {
    if (!routes_.isOnCard(tensor)) return host_->receive(tensor, peer, tag);
    if (areCards({peer})) return cards_->receive(tensor, peer, tag);
    const at::Tensor copy = onHost(tensor);
    return std::make_unique<StagedTransfer>(host_->receive(copy, peer, tag), copy, tensor);
  }

  std::unique_ptr<Transfer> startAllReduceSum(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    if (!routes_.isOnCard(tensor)) return host_->startAllReduceSum(tensor, ranks);
    if (areCards(ranks)) return cards_->startAllReduceSum(tensor, ranks);
    const at::Tensor copy = copyOnHost(tensor);
    return std::make_unique<StagedTransfer>(host_->startAllReduceSum(copy, ranks), copy, tensor);
  }

  Result<void> allReduceMax(const at::Tensor& tensor, const std::vector<int>& ranks) override {
    if (!routes_.isOnCard(tensor)) return host_->allReduceMax(tensor, ranks);
    if (areCards(ranks)) return cards_->allReduceMax(tensor, ranks);
    const at::Tensor copy = copyOnHost(tensor);
    if (auto done = host_->allReduceMax(copy, ranks); !done) return done;
    const at::NoGradGuard noGrad;
    tensor.copy_(copy);
    return {};
  }

 private:
  bool areCards(const std::vector<int>& ranks) const {
    return std::ranges::all_of(ranks, [&](int rank) { return routes_.isCard[static_cast<std::size_t>(rank)]; });
  }

  std::unique_ptr<Comm> host_, cards_;
  Routes routes_;
};

}  // namespace

std::unique_ptr<Comm> routed(std::unique_ptr<Comm> host, std::unique_ptr<Comm> cards, Routes routes) {
  return std::make_unique<RoutedComm>(std::move(host), std::move(cards), std::move(routes));
}

}  // namespace evenkeel
