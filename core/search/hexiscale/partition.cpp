// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/partition.h"

#include <algorithm>
#include <numeric>

namespace evenkeel::hexiscale {
namespace {

constexpr double kTolerance = 1.03;  // as METIS's k-way has it
constexpr int kMostPasses = 8;

class Division {
 public:
  Division(const std::vector<DeviceClass>& classes, int parts, const std::function<double(std::size_t, std::size_t)>& edge)
      : classes_(classes), partCount_(static_cast<std::size_t>(parts)) {
    counts_.assign(partCount_, std::vector<int>(classes.size(), 0));
    loads_.assign(partCount_, 0.0);
    sizes_.assign(partCount_, 0);
    ties_.assign(partCount_, std::vector<double>(classes.size(), 0.0));
    for (std::size_t a = 0; a < classes.size(); ++a) {
      edges_.emplace_back();
      for (std::size_t b = 0; b < classes.size(); ++b) edges_.back().push_back(edge(a, b));
    }
  }

  /// Largest first to the lightest part; of equally light ones to the one with most ties to the device.
  void fill() {
    std::vector<std::size_t> order(classes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t c) { return classes_[c].weight; });
    for (const std::size_t c : order) {
      for (std::size_t i = 0; i < classes_[c].members.size(); ++i) {
        std::size_t best = 0;
        for (std::size_t p = 1; p < partCount_; ++p) {
          const double more = loads_[p] - loads_[best], even = 1e-9 * classes_[c].weight;
          if (more < -even || (more <= even && ties_[p][c] > ties_[best][c])) best = p;
        }
        add(best, c, 1);
      }
    }
  }

  void improve(const std::function<bool()>& stopped) {
    target_ = std::accumulate(loads_.begin(), loads_.end(), 0.0) / static_cast<double>(partCount_);
    for (int pass = 0; pass < kMostPasses && !stopped(); ++pass) {
      bool changed = false;
      for (std::size_t from = 0; from < partCount_ && !stopped(); ++from) {
        for (std::size_t c = 0; c < classes_.size(); ++c) {
          while (counts_[from][c] > 0 && (move(from, c) || exchange(from, c))) changed = true;
        }
      }
      if (!changed) return;
    }
  }

  [[nodiscard]] std::vector<std::vector<int>> parts() const {
    std::vector<std::vector<int>> result(partCount_);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      auto next = classes_[c].members.begin();
      for (std::size_t p = 0; p < partCount_; ++p) {
        result[p].insert(result[p].end(), next, next + counts_[p][c]);
        next += counts_[p][c];
      }
    }
    for (auto& part : result) std::ranges::sort(part);
    std::ranges::sort(result);
    return result;
  }

 private:
  void add(std::size_t part, std::size_t c, int count) {
    counts_[part][c] += count;
    sizes_[part] += count;
    loads_[part] += count * classes_[c].weight;
    for (std::size_t other = 0; other < classes_.size(); ++other) ties_[part][other] += count * edges_[c][other];
  }

  /// Edges of a device of class c to the other members of a part that it is in.
  [[nodiscard]] double tiesInside(std::size_t part, std::size_t c) const { return ties_[part][c] - edges_[c][c]; }
  [[nodiscard]] bool staysBalanced(std::size_t a, std::size_t b, double toB) const {
    const double limit = std::max({kTolerance * target_, loads_[a], loads_[b]});
    return loads_[a] - toB <= limit && loads_[b] + toB <= limit;
  }
  [[nodiscard]] static bool isGain(double gain, double scale) { return gain > 1e-9 * scale; }

  bool move(std::size_t from, std::size_t c) {
    if (sizes_[from] < 2) return false;
    const double here = tiesInside(from, c);
    for (std::size_t to = 0; to < partCount_; ++to) {
      if (to == from || !staysBalanced(from, to, classes_[c].weight)) continue;
      if (!isGain(ties_[to][c] - here, ties_[to][c])) continue;
      add(from, c, -1);
      add(to, c, 1);
      return true;
    }
    return false;
  }

  /// With the best partner in any other part.
  bool exchange(std::size_t from, std::size_t c) {
    const double here = tiesInside(from, c);
    double best = 0;
    std::size_t bestPart = 0, bestClass = 0;
    for (std::size_t to = 0; to < partCount_; ++to) {
      if (to == from) continue;
      for (std::size_t d = 0; d < classes_.size(); ++d) {
        if (counts_[to][d] == 0 || d == c || !staysBalanced(from, to, classes_[c].weight - classes_[d].weight)) continue;
        const double gain = ties_[to][c] - here + ties_[from][d] - tiesInside(to, d) - 2 * edges_[c][d];
        if (!isGain(gain, ties_[to][c] + ties_[from][d]) || gain <= best) continue;
        best = gain;
        bestPart = to;
        bestClass = d;
      }
    }
    if (best <= 0) return false;
    add(from, c, -1);
    add(bestPart, c, 1);
    add(bestPart, bestClass, -1);
    add(from, bestClass, 1);
    return true;
  }

  const std::vector<DeviceClass>& classes_;
  std::size_t partCount_;
  double target_ = 0;
  std::vector<std::vector<int>> counts_;    // by part, class
  std::vector<int> sizes_;                  // by part
  std::vector<double> loads_;               // by part
  std::vector<std::vector<double>> ties_;   // by part, class: edges between a device of the class and all members
  std::vector<std::vector<double>> edges_;  // by class, class
};

}  // namespace

std::vector<std::vector<int>> partition(const std::vector<DeviceClass>& classes, int parts,
                                        const std::function<double(std::size_t, std::size_t)>& edge,
                                        const std::function<bool()>& stopped) {
  Division division(classes, parts, edge);
  division.fill();
  if (parts > 1) division.improve(stopped);
  return division.parts();
}

}  // namespace evenkeel::hexiscale
