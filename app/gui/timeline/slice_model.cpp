// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/timeline/slice_model.h"

#include <algorithm>
#include <cmath>

namespace evenkeel::gui {
namespace {

constexpr std::size_t kKindCount = 6;

/// Gathers slices of less than a pixel, pixel by pixel, and hands out runs of pixels of one colour.
class PixelMerger {
 public:
  explicit PixelMerger(std::vector<PaintedSlice>& painted) : painted_(painted) {}

  void add(double x, double right, Span::Kind kind) {
    const double pixel = std::floor(x);
    if (pixel != pixel_) closePixel();
    pixel_ = pixel;
    isOpen_ = true;
    taken_[static_cast<std::size_t>(kind)] += right - x;
  }

  void closeRun() {
    closePixel();
    isRun_ = false;
  }

 private:
  void closePixel() {
    if (!isOpen_) return;
    const auto most = std::max_element(taken_.begin(), taken_.end());
    const auto kind = static_cast<Span::Kind>(most - taken_.begin());
    taken_.fill(0);
    isOpen_ = false;
    if (isRun_ && painted_.back().kind == kind && painted_.back().x + painted_.back().width == pixel_) {
      painted_.back().width += 1;
      return;
    }
    painted_.push_back({pixel_, 1, kind, -1, true});
    isRun_ = true;
  }

  std::vector<PaintedSlice>& painted_;
  std::array<double, kKindCount> taken_{};  // pixels of each kind in the open pixel
  double pixel_ = -1;
  bool isOpen_ = false, isRun_ = false;
};

}  // namespace

SliceModel::SliceModel(const Timeline& timeline) : lanes_(timeline.lanes), tracks_(timeline.lanes.size()) {
  for (const Span& span : timeline.spans) {
    const Track track = span.kind == Span::Kind::Send ? Track::Sends : Track::Work;
    tracks_[static_cast<std::size_t>(span.lane)][static_cast<std::size_t>(track)].push_back(span);
    end_ = std::max(end_, span.end);
  }
  for (auto& tracks : tracks_) {
    for (auto& track : tracks) {
      if (!std::ranges::is_sorted(track, {}, &Span::start)) std::ranges::stable_sort(track, {}, &Span::start);
    }
  }
}

std::size_t SliceModel::sliceCount() const {
  std::size_t count = 0;
  for (const auto& tracks : tracks_) count += tracks[0].size() + tracks[1].size();
  return count;
}

void SliceModel::visible(std::size_t lane, Track track, const TimeAxis& axis, std::vector<PaintedSlice>& painted) const {
  painted.clear();
  const auto& all = spans(lane, track);
  const double scale = axis.width() / (axis.last() - axis.first()).value, offset = axis.first().value;
  PixelMerger merger(painted);
  // Slices of one track hardly overlap: the one before the first that begins inside may still reach into the window.
  auto slice = std::ranges::lower_bound(all, axis.first(), {}, &Span::start);
  if (slice != all.begin()) --slice;
  for (; slice != all.end() && slice->start <= axis.last(); ++slice) {
    if (slice->end < axis.first()) continue;
    const double x = (slice->start.value - offset) * scale, right = (slice->end.value - offset) * scale;
    if (right - x < 1) {
      merger.add(std::max(0.0, x), right, slice->kind);
      continue;
    }
    merger.closeRun();
    const double left = std::max(0.0, x);
    painted.push_back({left, std::max(1.0, std::min(axis.width(), right) - left), slice->kind, slice->microBatch, false});
  }
  merger.closeRun();
}

const Span* SliceModel::at(std::size_t lane, Track track, Seconds time, Seconds tolerance) const {
  const auto& all = spans(lane, track);
  const auto next = std::ranges::upper_bound(all, time, {}, &Span::start);
  const Span* nearest = nullptr;
  Seconds distance = tolerance;
  if (next != all.begin()) {
    const Span& before = *std::prev(next);
    const Seconds past = time - before.end;
    if (past.value <= 0) return &before;
    if (past <= distance) {
      nearest = &before;
      distance = past;
    }
  }
  if (next != all.end() && next->start - time <= distance) nearest = &*next;
  return nearest;
}

}  // namespace evenkeel::gui
