// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "core/profile/profile_table.h"

namespace evenkeel {

/// The parts of a model that layer profiles time.
enum class LayerPart { Embedding, Layer, Head };

/// What a layer profile says of one part for one tp and number of samples.
struct LayerPoint {
  Seconds forward, backward;
  std::optional<Bytes> saved;
};

/// Divides layers among ops: forward, backward and saved bytes each in the proportion that the analytic profile sees. A part of
/// one op keeps its values as they are (imported), the others are marked Apportioned.
class Apportioner {
 public:
  Apportioner(const Model& model, const Training& training);

  /// `device` gives the proportion between products and traffic. `withoutProjection`: the head holds its norm alone.
  void add(DeviceProfile& profile, const DeviceType& device, LayerPart part, int tp, std::int64_t samples,
           const LayerPoint& point, bool withoutProjection = false) const;
  /// The same of a layer whose forward and backward are known as a sum only.
  void addSum(DeviceProfile& profile, const DeviceType& device, LayerPart part, int tp, std::int64_t samples, Seconds sum) const;

 private:
  [[nodiscard]] std::vector<OpCost> costsOf(const std::vector<Op>& ops, const DeviceType& device, int tp,
                                            std::int64_t samples) const;

  Model model_;
  Training training_;
};

}  // namespace evenkeel
