// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/device_groups.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace evenkeel::metis {
namespace {

/// Groups that are permuted as one.
using Item = std::vector<int>;

int sumOf(const Item& item) { return std::accumulate(item.begin(), item.end(), 0); }

/// All ascending lists of `stages` of the shapes (ascending) that sum to `devices`, in lexicographic order.
std::vector<std::vector<int>> listsOf(const std::vector<int>& shapes, int devices, int stages) {
  std::vector<std::vector<int>> lists;
  std::vector<int> chosen;
  const std::function<void(std::size_t, int, int)> choose = [&](std::size_t first, int left, int more) {
    if (more == 0) {
      if (left == 0) lists.push_back(chosen);
      return;
    }
    for (std::size_t i = first; i < shapes.size() && shapes[i] * more <= left; ++i) {
      chosen.push_back(shapes[i]);
      choose(i, left - shapes[i], more - 1);
      chosen.pop_back();
    }
  };
  choose(0, devices, stages);
  return lists;
}

/// Ties neighbouring groups as large as the first, pair by pair, until there are few enough or nothing more to tie.
std::vector<Item> coarsened(const std::vector<int>& list, int most) {
  std::vector<Item> items;
  for (const int group : list) items.push_back({group});
  int excess = static_cast<int>(items.size()) - most;
  while (static_cast<int>(items.size()) > most) {
    const int size = sumOf(items.front());
    const auto unlike = std::ranges::find_if(items, [&](const Item& item) { return item != items.front(); });
    const int alike = unlike == items.end() ? static_cast<int>(items.size()) : 1 + static_cast<int>(unlike - items.begin());
    excess = std::max(excess, alike / 2);
    std::vector<Item> tied;
    std::size_t i = 0;
    for (int pair = 0; pair < excess && i + 1 < items.size(); ++pair, i += 2) {
      if (sumOf(items[i]) == size && sumOf(items[i + 1]) == size) {
        Item both = items[i];
        both.insert(both.end(), items[i + 1].begin(), items[i + 1].end());
        tied.push_back(std::move(both));
      } else {
        tied.push_back(items[i]);
        tied.push_back(items[i + 1]);
      }
    }
    tied.insert(tied.end(), items.begin() + static_cast<std::ptrdiff_t>(i), items.end());
    items = std::move(tied);
    const int now = static_cast<int>(items.size()) - most;
    if (now == excess) break;
    excess = now;
  }
  return items;
}

/// Calls `visit` with every distinct permutation. A linked list in descending order; each step moves one node to the front.
void permute(std::vector<Item> items, const std::function<void(const std::vector<Item>&)>& visit) {
  std::ranges::sort(items, std::greater<>{});
  const std::size_t count = items.size(), end = count;
  std::vector<std::size_t> next(count);
  std::iota(next.begin(), next.end(), std::size_t{1});
  std::size_t head = 0;
  const auto show = [&] {
    std::vector<Item> order;
    for (std::size_t node = head; node != end; node = next[node]) order.push_back(items[node]);
    visit(order);
  };
  show();
  if (count < 2) return;
  std::size_t last = count - 2, behind = count - 1;  // of the longest descending prefix: its last node and the one behind it
  while (next[behind] != end || items[behind] < items[head]) {
    const std::size_t before = next[behind] != end && items[last] >= items[next[behind]] ? behind : last;
    const std::size_t moved = next[before];
    next[before] = next[moved];
    next[moved] = head;
    if (items[moved] < items[head]) last = moved;
    behind = next[last];
    head = moved;
    show();
  }
}

}  // namespace

std::vector<DeviceGroups> deviceGroups(int devices, int stages, double variance, int mostPermuted) {
  const double least = std::max(devices / stages, stages / devices) * variance;
  std::vector<int> shapes;
  for (int shape = 1; shape <= devices; shape *= 2) {
    if (shape >= least) shapes.push_back(shape);
  }
  std::vector<DeviceGroups> all;
  for (const std::vector<int>& list : listsOf(shapes, devices, stages)) {
    permute(coarsened(list, mostPermuted), [&](const std::vector<Item>& order) {
      DeviceGroups groups;
      for (const Item& item : order) groups.insert(groups.end(), item.begin(), item.end());
      all.push_back(std::move(groups));
    });
  }
  return all;
}

}  // namespace evenkeel::metis
