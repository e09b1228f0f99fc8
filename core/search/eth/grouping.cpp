// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/eth/grouping.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <set>

namespace evenkeel {
namespace {

/// More groupings than this are not tried: all of 16 devices of two types are 46,000.
constexpr std::size_t kMostGroupings = 60000;
/// Blocks of the fixed device order: the dynamic programme looks at all their ranges.
constexpr int kMostBlocks = 32;
/// Group sizes tried when a type is on its own.
constexpr int kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024};
constexpr std::size_t kMostTypesCrossed = 2;
/// Numbers of pipelines tried between one power of two and the next.
constexpr int kNumbersAnOctave = 16;

class Groupings {
 public:
  Groupings(const std::vector<TypeFigures>& types, int mostPipelines) : mostPipelines_(mostPipelines) {
    for (const TypeFigures& type : types) counts_.push_back(type.count);
  }

  std::vector<Grouping> run() {
    add({counts_});
    const int devices = std::accumulate(counts_.begin(), counts_.end(), 0);
    if (devices > kMostDevicesInFull) {
      for (const int block : {1, 2, 4, 8}) addEven(block);
      addSeparate();
    }
    while (devices / block_ > kMostDevicesInFull) block_ *= 2;
    Composition blocks = counts_;
    for (int& count : blocks) count /= block_;
    Grouping chosen;
    addAll(blocks, blocks, chosen);
    return std::move(found_);
  }

 private:
  void add(Grouping grouping) {
    std::erase_if(grouping, [](const Composition& c) { return std::ranges::all_of(c, [](int n) { return n == 0; }); });
    if (grouping.empty() || static_cast<int>(grouping.size()) > mostPipelines_ || found_.size() >= kMostGroupings) return;
    std::ranges::sort(grouping, std::greater<>{});
    if (seen_.insert(grouping).second) found_.push_back(std::move(grouping));
  }

  /// Every multiset of compositions within `left`, none larger than `most` in the order of vectors; what is left over is idle.
  /// All in blocks.
  void addAll(const Composition& left, const Composition& most, Grouping& chosen) {
    if (found_.size() >= kMostGroupings) return;
    if (!chosen.empty()) {
      Grouping grouping = chosen;
      for (Composition& composition : grouping) {
        for (int& count : composition) count *= block_;
      }
      add(std::move(grouping));
    }
    if (static_cast<int>(chosen.size()) >= mostPipelines_) return;
    Composition next(left.size(), 0);
    const std::function<void(std::size_t)> choose = [&](std::size_t type) {
      if (type == left.size()) {
        if (next > most || std::ranges::all_of(next, [](int n) { return n == 0; })) return;
        Composition rest = left;
        for (std::size_t t = 0; t < rest.size(); ++t) rest[t] -= next[t];
        chosen.push_back(next);
        addAll(rest, Composition(next), chosen);
        chosen.pop_back();
        return;
      }
      const int limit = left[type];
      for (int n = limit; n >= 0; --n) {
        next[type] = n;
        choose(type + 1);
      }
      next[type] = 0;
    };
    choose(0);
  }

  /// n pipelines that hold as many blocks of each type as the others, one more where it does not divide: of every second type the
  /// last ones, so that the sums stay even.
  void addEven(int block) {
    const int most = std::min(mostPipelines_, std::accumulate(counts_.begin(), counts_.end(), 0) / block);
    for (int n = 1; n <= most; n += std::max(1, static_cast<int>(std::bit_floor(static_cast<unsigned>(n))) / kNumbersAnOctave)) {
      Grouping grouping(static_cast<std::size_t>(n), Composition(counts_.size(), 0));
      for (std::size_t t = 0; t < counts_.size(); ++t) {
        const int blocks = counts_[t] / block;
        for (int i = 0; i < n; ++i) {
          const int place = t % 2 == 0 ? i : n - 1 - i;
          grouping[static_cast<std::size_t>(place)][t] = block * (blocks / n + (i < blocks % n ? 1 : 0));
        }
        grouping[t % 2 == 0 ? 0 : static_cast<std::size_t>(n - 1)][t] += counts_[t] % block;
      }
      add(std::move(grouping));
    }
  }

  /// Types apart. One size for each of up to two types, else one size for all of them.
  void addSeparate() {
    std::vector<std::vector<Grouping>> ofType;
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      auto& choices = ofType.emplace_back();
      for (const int size : kSizes) {
        if (size > counts_[t]) break;
        Grouping groups;
        for (int used = 0; used < counts_[t]; used += size) {
          groups.emplace_back(counts_.size(), 0);
          groups.back()[t] = std::min(size, counts_[t] - used);
        }
        choices.push_back(std::move(groups));
      }
      if (counts_[t] > 0) {
        Grouping whole(1, Composition(counts_.size(), 0));
        whole[0][t] = counts_[t];
        choices.push_back(std::move(whole));
      }
    }
    if (counts_.size() <= kMostTypesCrossed) {
      Grouping chosen;
      cross(ofType, 0, chosen);
      return;
    }
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      Grouping all;
      for (const auto& choices : ofType) {
        const Grouping& groups = choices[std::min(i, choices.size() - 1)];
        all.insert(all.end(), groups.begin(), groups.end());
      }
      add(std::move(all));
    }
  }

  void cross(const std::vector<std::vector<Grouping>>& ofType, std::size_t type, Grouping& chosen) {
    if (type == ofType.size()) {
      add(chosen);
      return;
    }
    const std::size_t before = chosen.size();
    for (const Grouping& groups : ofType[type]) {
      chosen.insert(chosen.end(), groups.begin(), groups.end());
      cross(ofType, type + 1, chosen);
      chosen.resize(before);
    }
    cross(ofType, type + 1, chosen);  // this type idle
  }

  int mostPipelines_;
  Composition counts_;
  int block_ = 1;  // devices
  std::vector<Grouping> found_;
  std::set<Grouping> seen_;
};

}  // namespace

std::vector<Grouping> groupings(const std::vector<TypeFigures>& types, int mostPipelines) {
  return Groupings(types, mostPipelines).run();
}

DeviceOrder::DeviceOrder(const std::vector<TypeFigures>& types) : typeCount_(types.size()) {
  int total = 0;
  for (const TypeFigures& type : types) total += type.count;
  while (total / blockSize_ > kMostBlocks) blockSize_ *= 2;
  for (std::size_t t = 0; t < types.size(); ++t) {
    typeOfBlock_.insert(typeOfBlock_.end(), static_cast<std::size_t>(types[t].count / blockSize_), static_cast<int>(t));
  }
}

Composition DeviceOrder::range(int first, int last) const {
  Composition composition(typeCount_, 0);
  for (int block = first; block < last; ++block)
    composition[static_cast<std::size_t>(typeOfBlock_[static_cast<std::size_t>(block)])] += blockSize_;
  return composition;
}

}  // namespace evenkeel
