// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/train/unit_exchange.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "runtime/data/samples.h"
#include "runtime/device/compute_clock.h"
#include "runtime/nn/tensor_parallel.h"

namespace evenkeel {
namespace {

constexpr int kExchangeTag = 4;  // after those of pipelines and rings
constexpr std::int64_t kElementBytes = 4;

void await(Transfer& transfer) {
  if (auto done = transfer.wait(); !done) throw CommFailure(done.error());
}

}  // namespace

int roundOf(std::int64_t microBatch, std::int64_t microBatches, std::int64_t rounds) {
  assert(microBatch < microBatches && microBatches <= rounds);
  return static_cast<int>(((microBatch + 1) * rounds + microBatches - 1) / microBatches - 1);
}

UnitExchange::UnitExchange(const Plan& plan, const HolderSync& sync, const Parameters& parameters, Comm& comm)
    : parameters_(parameters), comm_(comm) {
  const std::vector<RankPlace> places = rankPlaces(plan);
  const RankPlace& own = places[static_cast<std::size_t>(comm.rank())];
  firstUnit_ = plan.pipelines[own.pipeline].stages[own.stage].units.first;
  microBatches_ = static_cast<int>(plan.pipelines[own.pipeline].microBatchCount());
  for (const Pipeline& pipeline : plan.pipelines) rounds_ = std::max(rounds_, static_cast<int>(pipeline.microBatchCount()));
  for (const RankPlace& place : places) {
    auto& ofRank = computes_.emplace_back(static_cast<std::size_t>(rounds_), false);
    const std::int64_t count = plan.pipelines[place.pipeline].microBatchCount();
    for (std::int64_t m = 0; m < count; ++m)
      ofRank[static_cast<std::size_t>(roundOf(m, count, rounds_))] = samplesOfReplica(plan, place, m).count > 0;
  }
  for (const auto& tensors : sync.ownership().sharedUnits) units_.push_back(unitOf(tensors, sync, places));
  countCost();
}

UnitExchange::Unit UnitExchange::unitOf(const std::vector<std::size_t>& tensors, const HolderSync& sync,
                                        const std::vector<RankPlace>& places) const {
  Unit unit;
  std::map<int, Peer> peers;
  const int self = comm_.rank();
  const auto adds = [&](int rank, bool isSplit) { return isSplit || places[static_cast<std::size_t>(rank)].shard == 0; };
  const auto sumOf = [&](std::size_t slice, std::int64_t offset) {
    const auto part = std::ranges::find_if(parameters_.parts(), [&](const Parameters::Part& p) { return p.slice == slice && p.offset == offset; });
    assert(part != parameters_.parts().end());
    return parameters_.ownGradients().narrow(0, part->gradientOffset, part->elements);
  };
  for (std::size_t s = 0; s < parameters_.slices().size(); ++s) {
    const TensorSlice& slice = parameters_.slices()[s];
    if (std::ranges::find(tensors, slice.tensor) == tensors.end()) continue;
    const auto group = std::ranges::find_if(sync.groups(), [&](const HolderSync::Group& g) { return g.range.first <= slice.offset && slice.offset < g.range.last; });
    const FlatRange whole{slice.offset, slice.offset + slice.elements};
    const bool isAlone = group == sync.groups().end();
    const std::vector<int> ranks = isAlone ? std::vector<int>{self} : group->ranks;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      FlatRange part = whole;
      if (!isAlone) {
        const FlatRange owned = partOf(group->range.size(), r, ranks.size());
        part = {std::max(whole.first, group->range.first + owned.first), std::min(whole.last, group->range.first + owned.last)};
      }
      if (part.first >= part.last) continue;
      const int owner = ranks[r];
      const std::size_t index = unit.pieces.size();
      unit.pieces.push_back({.bucket = parameters_.bucketOf(s).narrow(0, part.first - slice.offset, part.size()),
                             .sum = owner == self ? sumOf(s, part.first) : at::Tensor()});
      if (owner != self) {
        if (!adds(self, slice.isSplit)) continue;
        peers[owner].toIt.push_back(index);
        peers[owner].elementsToIt += part.size();
        continue;
      }
      for (const int rank : ranks) {
        if (!adds(rank, slice.isSplit)) continue;
        peers[rank].fromIt.push_back(index);
        peers[rank].elementsFromIt += part.size();
      }
    }
  }
  for (auto& [rank, peer] : peers) {
    peer.rank = rank;
    unit.peers.push_back(std::move(peer));
  }
  return unit;
}

bool UnitExchange::computes(int rank, int round) const { return computes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)]; }

std::vector<Line> UnitExchange::lines() const {
  std::vector<Line> lines;
  const int self = comm_.rank();
  for (const Unit& unit : units_) {
    for (const Peer& peer : unit.peers) {
      if (peer.rank == self) continue;
      if (peer.elementsToIt > 0) lines.push_back({self, peer.rank, kExchangeTag});
      if (peer.elementsFromIt > 0) lines.push_back({peer.rank, self, kExchangeTag});
    }
  }
  return lines;
}

void UnitExchange::countCost() {
  std::int64_t staged = 0;
  for (const Unit& unit : units_) {
    std::int64_t ofUnit = 0;
    for (const Peer& peer : unit.peers) {
      if (peer.rank == comm_.rank()) continue;
      ofUnit += (peer.elementsToIt + peer.elementsFromIt) * kElementBytes;
      for (int round = 0; round < rounds_; ++round) {
        if (peer.elementsToIt == 0 || !computes(comm_.rank(), round)) continue;
        ++cost_.calls;
        cost_.bytes += peer.elementsToIt * kElementBytes;
      }
    }
    staged = std::max(staged, ofUnit);
  }
  cost_.held = parameters_.bucketBytes() + staged;
}

void UnitExchange::beginBackward(int microBatch) {
  const int round = roundOf(microBatch, microBatches_, rounds_);
  const int own = computes(comm_.rank(), round) ? round : round + 1;
  while (nextRound_ < own) receiveRound(nextRound_++);
}

void UnitExchange::endStep() {
  while (nextRound_ < rounds_) receiveRound(nextRound_++);
}

void UnitExchange::receiveRound(int round) {
  const auto start = SteadyClock::now();
  for (std::size_t u = units_.size(); u-- > 0;) exchange(units_[u], round);
  time_ += secondsSince(start);
}

void UnitExchange::unitDone(int unit) {
  const auto start = SteadyClock::now();
  exchange(units_[static_cast<std::size_t>(unit - firstUnit_)], nextRound_);
  if (unit == firstUnit_) ++nextRound_;
  time_ += secondsSince(start);
}

void UnitExchange::exchange(const Unit& unit, int round) {
  const int self = comm_.rank();
  const bool hasOwn = computes(self, round);
  std::vector<at::Tensor> arrived;
  std::vector<std::unique_ptr<Transfer>> receives, sends;
  for (const Peer& peer : unit.peers) {
    arrived.emplace_back();
    receives.emplace_back();
    if (peer.rank == self || peer.elementsFromIt == 0 || !computes(peer.rank, round)) continue;
    arrived.back() = at::empty({peer.elementsFromIt}, parameters_.ownGradients().options());
    receives.back() = comm_.receive(arrived.back(), peer.rank, kExchangeTag);
  }
  for (const Peer& peer : unit.peers) {
    if (!hasOwn || peer.rank == self || peer.elementsToIt == 0) continue;
    const at::Tensor message = at::empty({peer.elementsToIt}, parameters_.ownGradients().options());
    std::int64_t next = 0;
    for (const std::size_t index : peer.toIt) {
      const at::Tensor& bucket = unit.pieces[index].bucket;
      message.narrow(0, next, bucket.numel()).copy_(bucket);
      next += bucket.numel();
    }
    sends.push_back(comm_.send(message, peer.rank, kExchangeTag));
  }
  for (std::size_t p = 0; p < unit.peers.size(); ++p) {
    const Peer& peer = unit.peers[p];
    if (peer.rank == self ? !hasOwn : !receives[p]) continue;
    if (receives[p]) await(*receives[p]);
    std::int64_t next = 0;
    for (const std::size_t index : peer.fromIt) {
      const Piece& piece = unit.pieces[index];
      piece.sum.add_(peer.rank == self ? piece.bucket : arrived[p].narrow(0, next, piece.sum.numel()));
      next += piece.sum.numel();
    }
    arrived[p].reset();
  }
  for (const auto& send : sends) await(*send);
  if (!hasOwn) return;
  for (const Piece& piece : unit.pieces) piece.bucket.zero_();
}

Seconds UnitExchange::takeTime() { return std::exchange(time_, Seconds{}); }

}  // namespace evenkeel
