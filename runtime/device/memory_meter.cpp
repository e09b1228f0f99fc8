// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/memory_meter.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

namespace evenkeel {
namespace {

std::atomic<std::int64_t> held = 0, peak = 0;  // transfers may free tensors in threads of their own

/// Keeps large blocks for the next tensor of their size, so that pages need not be made again and again, but never more of them than the tensors
/// themselves have taken at their peak (and 1/32 of it): the C library, which does the same without such a limit, came to hold up to twice the
/// activations, because blocks of unlike lives lie between each other.
class BlockPool {
 public:
  static constexpr std::size_t kSmallest = std::size_t{256} << 10U;

  /// Null: the machine has no memory left.
  void* take(std::size_t bytes) {
    const std::size_t size = (bytes + kPage + kPage - 1) / kPage * kPage;  // one more, for the shift
    const std::lock_guard lock(mutex_);
    if (const auto fitting = free_.lower_bound(size); fitting != free_.end() && fitting->first <= size + size / 16) {
      void* const block = fitting->second;
      cached_ -= fitting->first;
      inUse_ += fitting->first;
      free_.erase(fitting);
      return block;
    }
    most_ = std::max(most_, inUse_ + size);
    while (!free_.empty() && inUse_ + size + cached_ > most_ + most_ / 32) release(std::prev(free_.end()));
    void* const begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    inUse_ += size;
    // Blocks that all begin a page would fall on the same places of the processor's caches.
    const std::size_t shift = kLine * (++count_ * 7 % (kPage / kLine));
    void* const block = static_cast<char*>(begin) + shift;
    blocks_.emplace(block, Block{begin, size});
    return block;
  }
  void give(void* block) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = blocks_.at(block).size;
    inUse_ -= size;
    cached_ += size;
    free_.emplace(size, block);
  }
  /// 0 if the block is none of ours.
  [[nodiscard]] std::size_t sizeOf(void* block) {
    const std::lock_guard lock(mutex_);
    const auto known = blocks_.find(block);
    return known == blocks_.end() ? 0 : known->second.size;
  }

 private:
  static constexpr std::size_t kPage = 4096, kLine = 64;
  struct Block {
    void* begin = nullptr;
    std::size_t size = 0;
  };
  void release(std::multimap<std::size_t, void*>::iterator unused) {
    const Block block = blocks_.at(unused->second);
    ::munmap(block.begin, block.size);
    cached_ -= block.size;
    blocks_.erase(unused->second);
    free_.erase(unused);
  }

  std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;  // by what was handed out
  std::multimap<std::size_t, void*> free_;   // by size
  std::size_t inUse_ = 0, cached_ = 0, most_ = 0, count_ = 0;
};

BlockPool& pool() {
  static BlockPool& pool = *new BlockPool;  // tensors may outlive what is destroyed at the end of a program
  return pool;
}

void count(std::size_t bytes) {
  const std::int64_t now = held += static_cast<std::int64_t>(bytes);
  for (std::int64_t known = peak; known < now && !peak.compare_exchange_weak(known, now);) {
  }
}

class MeteredAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  c10::DataPtr allocate(std::size_t bytes) override {
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
#endif
    if (bytes >= BlockPool::kSmallest) {
      if (void* const block = pool().take(bytes)) {
        count(pool().sizeOf(block));
        return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
      }
    }  // of what cannot be had, the usual allocator complains
    c10::DataPtr data = c10::GetDefaultCPUAllocator()->allocate(bytes);
    if (data.get() == nullptr) return data;
    count(::malloc_usable_size(data.get()));
    const bool isOurs = data.compare_exchange_deleter(data.get_deleter(), &release);
    TORCH_INTERNAL_ASSERT(isOurs);
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void release(void* data) {
    if (const std::size_t bytes = pool().sizeOf(data)) {
      held -= static_cast<std::int64_t>(bytes);
      return pool().give(data);
    }
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
