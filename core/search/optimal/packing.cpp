// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/optimal/packing.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace evenkeel::optimal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-9;
/// Cells x columns of the exact part of a packing: a few milliseconds.
constexpr std::size_t kMostWork = 4'000'000;
constexpr int kMostPivots = 400;
/// A packing of so few columns may be sought from scratch.
constexpr double kFewPipelines = 16;

/// max v.y, C y <= b, y >= 0 with b >= 0: starts from y = 0, so that one phase suffices. The basis inverse is kept dense: one row
/// for each kind of device.
class Simplex {
 public:
  Simplex(std::span<const Column> columns, std::span<const int> devices, double time)
      : columns_(columns), rows_(devices.size()), inverse_(rows_ * rows_, 0.0), basis_(rows_, kSlack) {
    for (std::size_t r = 0; r < rows_; ++r) {
      inverse_[r * rows_ + r] = 1;
      // Different amounts break ties, so that no pivot cycles.
      amounts_.push_back(devices[r] * (1.0 + 1e-10 * static_cast<double>(r + 1)));
    }
    for (const Column& column : columns) values_.push_back(static_cast<double>(column.samplesIn(time)));
  }

  Relaxed run() {
    Relaxed out;
    for (int pivot = 0; pivot < kMostPivots; ++pivot) {
      const std::vector<double> prices = duals();
      // A slack has value 0 and one device: it enters where a price fell below 0.
      double best = kTiny;
      long entering = -1;
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        if (values_[j] <= 0) continue;
        double gain = values_[j];
        for (std::size_t r = 0; r < rows_; ++r) gain -= prices[r] * columns_[j].uses[r];
        if (gain > best) {
          best = gain;
          entering = static_cast<long>(j);
        }
      }
      for (std::size_t r = 0; r < rows_; ++r) {
        if (-prices[r] > best) {
          best = -prices[r];
          entering = kSlack - static_cast<long>(r);
        }
      }
      if (entering == -1 || !exchange(entering)) break;
    }
    out.prices = duals();
    for (double& price : out.prices) price = std::max(0.0, price);
    for (std::size_t r = 0; r < rows_; ++r) {
      if (basis_[r] < 0) continue;
      const double amount = std::max(0.0, amounts_[r]);
      out.samples += values_[static_cast<std::size_t>(basis_[r])] * amount;
      out.fractions.emplace_back(static_cast<std::size_t>(basis_[r]), amount);
    }
    return out;
  }

 private:
  static constexpr long kSlack = -2;  // kSlack - r: the slack of row r

  [[nodiscard]] double valueOf(long variable) const { return variable >= 0 ? values_[static_cast<std::size_t>(variable)] : 0.0; }

  [[nodiscard]] std::vector<double> duals() const {
    std::vector<double> prices(rows_, 0.0);
    for (std::size_t i = 0; i < rows_; ++i) {
      const double value = valueOf(basis_[i]);
      if (value == 0) continue;
      for (std::size_t r = 0; r < rows_; ++r) prices[r] += value * inverse_[i * rows_ + r];
    }
    return prices;
  }

  bool exchange(long entering) {
    std::vector<double> direction(rows_, 0.0);
    for (std::size_t i = 0; i < rows_; ++i) {
      if (entering < 0) {
        direction[i] = inverse_[i * rows_ + static_cast<std::size_t>(kSlack - entering)];
      } else {
        for (std::size_t r = 0; r < rows_; ++r)
          direction[i] += inverse_[i * rows_ + r] * columns_[static_cast<std::size_t>(entering)].uses[r];
      }
    }
    std::size_t leaving = rows_;
    double least = kNever;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (direction[i] > kTiny && amounts_[i] / direction[i] < least) {
        least = amounts_[i] / direction[i];
        leaving = i;
      }
    }
    if (leaving == rows_) return false;
    const double pivot = direction[leaving];
    for (std::size_t r = 0; r < rows_; ++r) inverse_[leaving * rows_ + r] /= pivot;
    amounts_[leaving] /= pivot;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (i == leaving || direction[i] == 0) continue;
      for (std::size_t r = 0; r < rows_; ++r) inverse_[i * rows_ + r] -= direction[i] * inverse_[leaving * rows_ + r];
      amounts_[i] -= direction[i] * amounts_[leaving];
    }
    basis_[leaving] = entering;
    return true;
  }

  std::span<const Column> columns_;
  std::size_t rows_;
  std::vector<double> inverse_, amounts_, values_;
  std::vector<long> basis_;
};

/// Of the columns that fit into the devices: for each composition the one that trains most.
struct Item {
  std::size_t column;
  std::int64_t samples;
};
std::vector<Item> itemsFor(std::span<const Column> columns, std::span<const int> devices, double time) {
  std::map<std::vector<int>, Item> best;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    bool fits = true;
    for (std::size_t r = 0; r < devices.size(); ++r) fits = fits && columns[j].uses[r] <= devices[r];
    const std::int64_t samples = fits ? columns[j].samplesIn(time) : 0;
    if (samples < 1) continue;
    const auto [entry, isNew] = best.try_emplace(columns[j].uses, Item{j, samples});
    if (!isNew && samples > entry->second.samples) entry->second = {j, samples};
  }
  std::vector<Item> items;
  for (const auto& [composition, item] : best) items.push_back(item);
  return items;
}

/// Steps of what all columns' devices are multiples of.
std::vector<int> gridSteps(std::span<const Column> columns, std::span<const Item> items, std::span<const int> devices) {
  std::vector<int> steps;
  for (std::size_t r = 0; r < devices.size(); ++r) {
    int step = 0;
    for (const Item& item : items) step = std::gcd(step, columns[item.column].uses[r]);
    steps.push_back(step == 0 ? devices[r] + 1 : step);
  }
  return steps;
}

std::size_t gridCells(std::span<const Column> columns, std::span<const Item> items, std::span<const int> devices) {
  const std::vector<int> steps = gridSteps(columns, items, devices);
  std::size_t cells = 1;
  for (std::size_t r = 0; r < devices.size() && cells <= kMostWork; ++r)
    cells *= static_cast<std::size_t>(devices[r] / steps[r] + 1);
  return cells;
}

/// Depth first, the columns that lose least against the prices first: finds a packing of a few columns, or gives up.
class PackDeep {
 public:
  PackDeep(std::span<const Column> columns, std::span<const double> prices, std::int64_t wanted)
      : columns_(columns), prices_(prices), wanted_(wanted) {}

  /// Samples of the best packing found, which is added to `copies`.
  std::int64_t run(std::vector<Item> items, std::vector<int> left, std::map<std::size_t, int>& copies) {
    items_ = std::move(items);
    std::ranges::stable_sort(
        items_, {}, [&](const Item& item) { return costOf(columns_[item.column].uses) - static_cast<double>(item.samples); });
    left_ = std::move(left);
    descend(0, 0);
    for (const std::size_t column : best_) ++copies[column];
    return bestSamples_;
  }

 private:
  [[nodiscard]] double costOf(std::span<const int> devices) const {
    double sum = 0;
    for (std::size_t r = 0; r < devices.size(); ++r) sum += prices_[r] * devices[r];
    return sum;
  }

  void descend(std::size_t first, std::int64_t samples) {
    if (samples > bestSamples_) {
      bestSamples_ = samples;
      best_ = taken_;
    }
    if (bestSamples_ >= wanted_) return;
    const double room = costOf(left_);
    for (std::size_t i = first; i < items_.size() && ++steps_ < kMostSteps && bestSamples_ < wanted_; ++i) {
      const std::vector<int>& used = columns_[items_[i].column].uses;
      const double lost = costOf(used) - static_cast<double>(items_[i].samples);
      // What is left cannot train more than it costs.
      if (static_cast<double>(samples) + room - std::max(0.0, lost) < static_cast<double>(wanted_)) return;
      bool fits = true;
      for (std::size_t r = 0; r < used.size() && fits; ++r) fits = used[r] <= left_[r];
      if (!fits) continue;
      for (std::size_t r = 0; r < used.size(); ++r) left_[r] -= used[r];
      taken_.push_back(items_[i].column);
      descend(i, samples + items_[i].samples);
      taken_.pop_back();
      for (std::size_t r = 0; r < used.size(); ++r) left_[r] += used[r];
    }
  }

  static constexpr std::int64_t kMostSteps = 100'000;
  std::span<const Column> columns_;
  std::span<const double> prices_;
  std::int64_t wanted_, bestSamples_ = 0, steps_ = 0;
  std::vector<Item> items_;
  std::vector<int> left_;
  std::vector<std::size_t> taken_, best_;
};

/// Exact: most samples on the grid of the devices.
std::int64_t packGrid(std::span<const Column> columns, const std::vector<Item>& items, std::span<const int> devices,
                      std::map<std::size_t, int>& copies) {
  if (items.empty()) return 0;
  const std::size_t kinds = devices.size();
  const std::vector<int> step = gridSteps(columns, items, devices);
  std::vector<int> size(kinds);
  for (std::size_t r = 0; r < kinds; ++r) size[r] = devices[r] / step[r] + 1;
  const std::size_t cells = gridCells(columns, items, devices);
  std::vector<std::int64_t> best(cells, 0);
  std::vector<int> taken(cells, -1);
  std::vector<std::size_t> stride(kinds);
  std::size_t product = 1;
  for (std::size_t r = 0; r < kinds; ++r) {
    stride[r] = product;
    product *= static_cast<std::size_t>(size[r]);
  }
  std::vector<std::vector<int>> use;
  std::vector<std::size_t> offset;
  for (const Item& item : items) {
    std::vector<int>& of = use.emplace_back(kinds);
    std::size_t sum = 0;
    for (std::size_t r = 0; r < kinds; ++r) {
      of[r] = columns[item.column].uses[r] / step[r];
      sum += static_cast<std::size_t>(of[r]) * stride[r];
    }
    offset.push_back(sum);
  }
  std::vector<int> at(kinds, 0);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      bool fits = true;
      for (std::size_t r = 0; r < kinds && fits; ++r) fits = use[i][r] <= at[r];
      if (!fits) continue;
      const std::int64_t sum = best[cell - offset[i]] + items[i].samples;
      if (sum > best[cell]) {
        best[cell] = sum;
        taken[cell] = static_cast<int>(i);
      }
    }
    for (std::size_t r = 0; r < kinds; ++r) {
      if (++at[r] < size[r]) break;
      at[r] = 0;
    }
  }
  for (std::size_t cell = cells - 1; taken[cell] >= 0;) {
    const auto i = static_cast<std::size_t>(taken[cell]);
    ++copies[items[i].column];
    cell -= offset[i];
  }
  return best[cells - 1];
}

}  // namespace

std::int64_t Column::samplesIn(double time) const {
  if (time < fill + sync) return 0;
  const double more = std::floor((time - fill - sync) / pace + 1e-9);
  const auto count = more < static_cast<double>(mostMicroBatches) ? static_cast<std::int64_t>(more) + 1 : mostMicroBatches;
  return microBatch * std::min(count, mostMicroBatches);
}

Relaxed packRelaxed(std::span<const Column> columns, std::span<const int> devices, double time) {
  return Simplex(columns, devices, time).run();
}

std::optional<RelaxedTime> leastRelaxedTime(std::span<const Column> columns, std::span<const int> devices, std::int64_t batch,
                                            const std::function<bool()>& stopped) {
  if (columns.empty()) return std::nullopt;
  const auto enough = static_cast<double>(batch) * (1 - 1e-9);
  double low = kNever;
  for (const Column& column : columns) low = std::min(low, column.fill + column.sync);
  double high = low;
  RelaxedTime best;
  for (int doubling = 0;; ++doubling) {
    best = {high, packRelaxed(columns, devices, high)};
    if (best.packing.samples >= enough) break;
    if (doubling > 60 || stopped()) return std::nullopt;
    low = high;
    high *= 2;
  }
  while (high - low > 1e-6 * high && !stopped()) {
    const double middle = (low + high) / 2;
    Relaxed packing = packRelaxed(columns, devices, middle);
    if (packing.samples >= enough) {
      high = middle;
      best = {middle, std::move(packing)};
    } else {
      low = middle;
    }
  }
  return best;
}

std::optional<Packed> packWhole(std::span<const Column> columns, std::span<const int> devices, std::int64_t batch, double time) {
  const Relaxed relaxed = packRelaxed(columns, devices, time);
  if (relaxed.samples < static_cast<double>(batch) * (1 - 1e-9)) return std::nullopt;
  double pipelines = 0;
  for (const auto& [column, amount] : relaxed.fractions) pipelines += amount;
  std::vector<int> fewers = {0, 1, 3};
  if (pipelines <= kFewPipelines) fewers.push_back(static_cast<int>(kFewPipelines));  // all of them open
  for (const int fewer : fewers) {
    std::vector<int> left(devices.begin(), devices.end());
    std::map<std::size_t, int> copies;
    std::int64_t samples = 0;
    for (const auto& [column, amount] : relaxed.fractions) {
      int count = std::max(0, static_cast<int>(std::floor(amount + 1e-6)) - fewer);
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (columns[column].uses[r] > 0) count = std::min(count, left[r] / columns[column].uses[r]);
      }
      if (count < 1) continue;
      copies[column] += count;
      samples += count * columns[column].samplesIn(time);
      for (std::size_t r = 0; r < left.size(); ++r) left[r] -= count * columns[column].uses[r];
    }
    if (samples < batch) {
      std::vector<Item> items = itemsFor(columns, left, time);
      if (gridCells(columns, items, left) * items.size() <= kMostWork) samples += packGrid(columns, items, left, copies);
      else samples += PackDeep(columns, relaxed.prices, batch - samples).run(std::move(items), left, copies);
    }
    if (samples < batch) continue;
    Packed packed{.time = time, .copies = {}};
    for (const auto& [column, count] : copies) packed.copies.emplace_back(column, count);
    return packed;
  }
  return std::nullopt;
}

}  // namespace evenkeel::optimal
