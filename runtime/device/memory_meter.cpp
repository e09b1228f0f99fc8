// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/memory_meter.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include <atomic>
#include <torch/version.h>

namespace evenkeel {
namespace {

std::atomic<std::int64_t> held = 0, peak = 0;  // transfers may free tensors in threads of their own

class MeteredAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  c10::DataPtr allocate(std::size_t bytes) override {
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
#endif
    c10::DataPtr data = c10::GetDefaultCPUAllocator()->allocate(bytes);
    if (data.get() == nullptr) return data;
    const std::int64_t now = held += static_cast<std::int64_t>(::malloc_usable_size(data.get()));
    for (std::int64_t known = peak; known < now && !peak.compare_exchange_weak(known, now);) {
    }
    const bool isOurs = data.compare_exchange_deleter(data.get_deleter(), &release);
    TORCH_INTERNAL_ASSERT(isOurs);
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void release(void* data) {
    held -= static_cast<std::int64_t>(::malloc_usable_size(data));
    c10::GetDefaultCPUAllocator()->raw_deleter()(data);
  }
};

}  // namespace

void meterTensors() {
  static MeteredAllocator allocator;
  static const bool isSet = [] {
    c10::SetCPUAllocator(&allocator, 1);
    return true;
  }();
  (void)isSet;
}

Bytes tensorBytes() { return {held.load()}; }
Bytes peakTensorBytes() { return {peak.load()}; }
void resetPeakTensorBytes() { peak = held.load(); }

}  // namespace evenkeel
