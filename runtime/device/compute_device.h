// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "core/base/units.h"
#include "runtime/device/memory_meter.h"
#include "runtime/job/process.h"

namespace evenkeel {

/// What one rank computes on, chosen once when the worker starts. Tensors that live from op to op are made at `place`.
struct ComputeDevice {
  at::Device place = at::kCPU;
  /// Its memory is ours: loops of our own may run over it, and messages may be read from it. Not so on a card; tests say false for
  /// the CPU, too, to go the way of a card without having one.
  bool isHost = true;
  /// Waits until all that was asked of it is done. Empty: it does all at once.
  std::function<void()> synchronize = {};
  /// Most bytes of its memory at once: what tensors held, and what the process held in all.
  std::function<Bytes()> peakOfTensors = peakTensorBytes, peakOfAll = peakResident;
};

}  // namespace evenkeel
