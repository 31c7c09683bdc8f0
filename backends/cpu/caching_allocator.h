#pragma once
// Host memory for tensors. Keeps freed memory for the next request of its size, because every
// decode step allocates the same few hundred sizes. It keeps only a little, or so much that kept
// memory and memory in use together do not exceed the earlier peak; in the latter case the system
// may reclaim it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "backends/cpu/region_heap.h"

namespace rbee::cpu {

class CachingAllocator {
 public:
  // Keeps at most `cache_limit` freed bytes, or the bytes between current use and its peak.
  explicit CachingAllocator(size_t cache_limit) : cache_limit_(cache_limit) {}
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // At least 64-byte aligned, uninitialised; throws out_of_memory naming the bytes.
  void* allocate(size_t bytes);
  // `bytes` as given to allocate; null does nothing.
  void free(void* data, size_t bytes) noexcept;
  // Returns all kept memory to the system.
  void trim() noexcept;

  struct Stats {
    size_t in_use = 0;  // bytes handed out, rounded up to what they occupy
    size_t peak = 0;    // highest in_use
    size_t cached = 0;  // bytes kept for reuse
  };
  Stats stats() const;

 private:
  // Small sizes: four classes for each power of two from 64 bytes to kLargestSmall.
  static constexpr size_t kLargestSmall = size_t{1} << 16;
  static constexpr int kClasses = 4 * 10 + 1;
  // Larger pieces have huge pages of their own.
  static constexpr size_t kLargestInRegion = kHugePage;

  void* take_pages(size_t bytes);  // null if the system has none
  void give_pages(void* data, size_t bytes) noexcept;

  void* take_cached_large(size_t bytes);
  void trim_locked() noexcept;
  // The most bytes to keep besides `in_use`.
  size_t kept_limit(size_t in_use) const noexcept;
  void drop_large_above(size_t limit) noexcept;
  // Whether `bytes` more may be kept. If that would exceed the limit, it releases large pieces, the
  // earliest freed first, and then all small ones, so that sizes that are never requested again do
  // not block others.
  bool make_room(size_t bytes) noexcept;
  void drop_small() noexcept;

  mutable std::mutex mutex_;
  size_t cache_limit_;
  Stats stats_;
  std::vector<void*> small_[kClasses];
  struct Freed {
    void* data;
    uint64_t order;  // of its freeing among all
  };
  std::multimap<size_t, Freed> large_;  // by mapped bytes
  uint64_t frees_ = 0;
  RegionHeap regions_;
  std::map<void*, size_t> mapped_;  // mapped bytes of each large allocation in use
};

}  // namespace rbee::cpu
