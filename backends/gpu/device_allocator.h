#pragma once
// A caching allocator of device memory: freed blocks serve later requests on the stream that freed
// them, because work on one stream runs in order. Small blocks are single allocations of the driver
// and serve requests of their size; large ones are cut from segments (segment_heap.h). Thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/gpu/segment_heap.h"

namespace rbee::gpu {

struct AllocatorStats {
  int64_t in_use = 0;          // bytes handed out
  int64_t cached = 0;          // bytes kept for reuse
  int64_t peak_in_use = 0;     // bytes, the most since the start or the last reset_peak
  uint64_t driver_calls = 0;   // allocations that went to the driver
  uint64_t requests = 0;       // allocations in all
  uint64_t times_trimmed = 0;  // times that memory ran out and the cache was freed
};

class DeviceAllocator {
 public:
  // The device of `ordinal` is made current for every call to the driver.
  DeviceAllocator(Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // At least 256-byte aligned. If memory runs out, frees the cache first; then throws out_of_memory
  // naming the bytes wanted, in use and free.
  void* allocate(size_t bytes, void* stream);
  void free(void* data, void* stream) noexcept;

  // From begin_pool until end_pool, allocations of `stream` come from a pool of their own, so that
  // nothing else uses the addresses of a captured graph. The graph must run on that stream. The
  // pool grows by the stream's cached memory, then by new memory. Call release_pool after the graph
  // and every tensor in it are gone: it returns the pool's memory to the stream's cache.
  void begin_pool(void* stream);
  uint64_t end_pool();
  void release_pool(uint64_t pool) noexcept;

  // Moves one stream's cached memory to another stream. The first stream's work must have ended,
  // and it is not used again.
  void move_stream(void* from, void* to) noexcept;

  AllocatorStats stats() const;
  void reset_peak();

 private:
  struct Block {
    size_t bytes = 0;
    uint64_t pool = 0;  // 0: ordinary
  };
  using FreeLists = std::map<size_t, std::vector<void*>>;

  static bool is_large(size_t bytes);
  void* take(const MemoryPlace& place, size_t bytes);
  void* take_small(const MemoryPlace& place, size_t bytes);
  void grow(const MemoryPlace& place, size_t bytes, size_t wanted,
            std::unique_lock<std::mutex>& lock);
  void* try_driver(size_t bytes);
  void give(void* data, size_t bytes, const MemoryPlace& place);
  void move_locked(const MemoryPlace& from, const MemoryPlace& to) noexcept;
  void trim_locked() noexcept;

  Driver& driver_;
  int ordinal_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;  // in use
  std::map<MemoryPlace, FreeLists> small_;   // freed ones by size
  SegmentHeap large_;
  std::unordered_set<void*> small_allocations_;  // of the driver
  std::map<uint64_t, void*> pool_streams_;
  void* pool_stream_ = nullptr;
  uint64_t open_pool_ = 0;
  uint64_t last_pool_ = 0;
  AllocatorStats stats_;
};

}  // namespace rbee::gpu
