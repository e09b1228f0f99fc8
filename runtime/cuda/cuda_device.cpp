// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <cstdlib>

#include "core/base/words.h"
#include "runtime/cuda/cuda.h"

namespace evenkeel {
namespace {

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What a person can do about what CUDA says.
std::string remedyFor(const std::string& said) {
  const std::string text = lowerCase(said);
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (has("too old")) return "install a newer driver there, or a PyTorch for an older CUDA";
  if (has("no nvidia driver")) return "install NVIDIA's driver there (nvidia-smi says whether it works), or plan with CPU cores";
  if (has("no kernel image")) return "install a PyTorch there that has code for this card";
  if (has("busy") || has("unavailable") || has("out of memory")) return "end whoever uses the card (nvidia-smi names them)";
  return "discover the machine again and plan with what it has";
}

Error noCard(const std::string& place, const std::string& said) {
  return failed(place, "no CUDA device: " + firstLine(said), remedyFor(said));
}

using Peak = decltype(c10::CachingDeviceAllocator::DeviceStats::allocated_bytes);
Bytes peakOf(const Peak& figures) { return {figures[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak}; }

}  // namespace

bool isBuiltForCards() { return true; }

Result<ComputeDevice> openCard(const std::string& place) {
  // Receives wait on streams of their own while the stage computes. With fewer connections than streams, what computes could queue
  // behind what waits for it.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  try {
    (void)c10::cuda::device_count_ensure_non_zero();
    c10::cuda::set_device(0);
    at::zeros({1}, at::device(at::kCUDA)).add_(1);  // whether LibTorch has code for it
    c10::cuda::getCurrentCUDAStream().synchronize();
  } catch (const c10::Error& failure) {
    return noCard(place, failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    return noCard(place, failure.what());
  }
  return ComputeDevice{
      .place = at::Device(at::kCUDA, 0),
      .isHost = false,
      // The stream that computes, not those on which receives wait.
      .synchronize = [] { c10::cuda::getCurrentCUDAStream().synchronize(); },
      .peakOfTensors = [] { return peakOf(c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes); },
      .peakOfAll = [] { return peakOf(c10::cuda::CUDACachingAllocator::getDeviceStats(0).reserved_bytes); }};
}

}  // namespace evenkeel
