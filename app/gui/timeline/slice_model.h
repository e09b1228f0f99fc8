// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "app/gui/timeline/time_axis.h"
#include "core/trace/timeline.h"

namespace evenkeel::gui {

/// What is painted: one slice, or many that share pixels.
struct PaintedSlice {
  double x = 0, width = 0;                // pixels from the left end of the rows; width is at least 1
  Span::Kind kind = Span::Kind::Forward;  // of many: the one that takes most of their time
  std::int64_t microBatch = -1;           // of many: -1
  bool isMerged = false;
};

/// A timeline, ordered so that what a window shows is found without a walk over the rest. No widget enters. Each lane has two
/// tracks: what it computes or waits for, and what it sends beside that.
class SliceModel {
 public:
  enum class Track { Work, Sends };

  SliceModel() = default;
  explicit SliceModel(const Timeline& timeline);

  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] Seconds end() const { return end_; }  // of the last slice
  [[nodiscard]] std::size_t sliceCount() const;

  /// What of a track is painted, from left to right, cut to [0, width of the axis]. Slices of less than a pixel are merged: at
  /// most two entries for each pixel come out, in O(log slices + slices shown). `painted` is overwritten; its memory is reused.
  void visible(std::size_t lane, Track track, const TimeAxis& axis, std::vector<PaintedSlice>& painted) const;

  /// The slice of the track at that time; else the nearest within `tolerance`; null: none. O(log slices).
  [[nodiscard]] const Span* at(std::size_t lane, Track track, Seconds time, Seconds tolerance = {}) const;

 private:
  [[nodiscard]] const std::vector<Span>& spans(std::size_t lane, Track track) const {
    return tracks_[lane][static_cast<std::size_t>(track)];
  }
  std::vector<Lane> lanes_;
  std::vector<std::array<std::vector<Span>, 2>> tracks_;  // by lane; sorted by start
  Seconds end_;
};

}  // namespace evenkeel::gui
