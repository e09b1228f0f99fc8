// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

namespace evenkeel::hexiscale {

/// Devices that nothing tells apart: one type in one node.
struct DeviceClass {
  double weight = 0;         // compute of one of them; above 0
  std::vector<int> members;  // indices
};

/// Divides the members of all classes into `parts` parts, none of them empty, of nearly equal weight, so that the edges between
/// parts weigh little: largest first to the lightest part, then moves and exchanges that lower the cut and keep the balance to
/// 3 % (or to what it was). Ours instead of METIS: the same on every machine. Parts list indices ascending, in order of their
/// first. `edge(a, b)`: weight of the edge between a member of class a and another of class b, any number from 0 on, so that no
/// network is too fast (mends B2). 1 <= parts <= members. `stopped` ends the improvement early. O(passes x (classes x parts)^2).
[[nodiscard]] std::vector<std::vector<int>> partition(const std::vector<DeviceClass>& classes, int parts,
                                                      const std::function<double(std::size_t, std::size_t)>& edge,
                                                      const std::function<bool()>& stopped);

}  // namespace evenkeel::hexiscale
