// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/profile/analytic_profile.h"
#include "core/profile/profile_table.h"

namespace evenkeel {

/// Answers from a table, and where the table has no point:
/// - samples between two points: linear; above the last: as between the last two; elsewhere as the analytic profile scales;
/// - another tp: from the nearest one, as the analytic profile scales;
/// - no point of the op or the device type: the analytic profile.
/// Values between points are marked Interpolated, those of the analytic profile Analytic. Sizes that the table lacks are counted.
class TableProfile final : public Profile {
 public:
  TableProfile(ProfileTable table, Model model, Training training, std::string description, AnalyticOptions options = {});

  [[nodiscard]] OpCost cost(const DeviceType& device, Op op, int tp, std::int64_t samples) const override;
  [[nodiscard]] Bytes reserved(const DeviceType& device) const override;
  [[nodiscard]] bool knows(const DeviceType& device) const override { return find(device) != nullptr; }
  [[nodiscard]] std::string description() const override { return description_; }

 private:
  [[nodiscard]] const DeviceProfile* find(const DeviceType& device) const;

  ProfileTable table_;
  AnalyticProfile analytic_;
  std::string description_;
};

/// The profile that a person names: a file of ours, or a folder or file as `import` takes. No name: the analytic profile.
/// A profile of another sequence length or precision than the training's is refused, and one that has none of the cluster's
/// device types; types that it lacks among others are named in its description.
[[nodiscard]] Result<std::unique_ptr<Profile>> profileFromArgument(const std::string& argument, const Cluster& cluster,
                                                                   const Model& model, const Training& training,
                                                                   AnalyticOptions options = {});

}  // namespace evenkeel
