#include "backends/gpu/device_allocator.h"

#include <algorithm>
#include <bit>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::gpu {
namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMiB = size_t{1} << 20;

// Larger blocks are cut from segments.
constexpr size_t kMostSmall = kMiB;
// Requests of less than half a segment share one; larger ones have segments of their own.
constexpr size_t kSegment = 32 * kMiB;
constexpr size_t kSegmentUnit = 2 * kMiB;

// Small sizes are rounded up so that similar requests share blocks: four classes for each power of
// two.
size_t size_class(size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  if (bytes > kMostSmall) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t step = std::max(std::bit_floor(bytes - 1) / 4, kAlignment);
  return (bytes + step - 1) / step * step;
}

std::string mib(int64_t bytes) {
  return cat(bytes / static_cast<int64_t>(kMiB), " MiB");
}

}  // namespace

DeviceAllocator::~DeviceAllocator() {
  for (void* data : small_allocations_) driver_.free(data);
  for (void* data : large_.segments()) driver_.free(data);
}

bool DeviceAllocator::is_large(size_t bytes) {
  return bytes > kMostSmall;
}

void* DeviceAllocator::take_small(const MemoryPlace& place, size_t bytes) {
  const auto lists = small_.find(place);
  if (lists == small_.end()) return nullptr;
  const auto list = lists->second.find(bytes);
  if (list == lists->second.end()) return nullptr;
  void* data = list->second.back();
  list->second.pop_back();
  if (list->second.empty()) lists->second.erase(list);
  return data;
}

void* DeviceAllocator::take(const MemoryPlace& place, size_t bytes) {
  return is_large(bytes) ? large_.take(place, bytes) : take_small(place, bytes);
}

// Null if the device has not that much.
void* DeviceAllocator::try_driver(size_t bytes) {
  ++stats_.driver_calls;
  try {
    driver_.use(ordinal_);
    return driver_.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() == Code::out_of_memory) return nullptr;
    fail(error.code(), "allocate", bytes, " bytes on ", rbee::name(driver_.kind()), ':', ordinal_,
         ": ", error.what());
  }
}

void DeviceAllocator::grow(const MemoryPlace& place, size_t bytes, size_t wanted,
                           std::unique_lock<std::mutex>& lock) {
  const size_t exact =
      is_large(bytes) ? (bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit : bytes;
  const size_t usual = is_large(bytes) && bytes < kSegment / 2 ? kSegment : exact;
  size_t got = usual;
  void* data = try_driver(usual);
  if (data == nullptr) {
    trim_locked();
    got = exact;
    data = try_driver(exact);
  }
  if (data == nullptr) {
    const int64_t in_use = stats_.in_use;
    lock.unlock();
    const MemoryInfo memory = driver_.memory();
    fail(Code::out_of_memory, "allocate", mib(static_cast<int64_t>(wanted)), " (", wanted,
         " bytes) on ", rbee::name(driver_.kind()), ':', ordinal_, ": ", mib(memory.free), " of ",
         mib(memory.total), " are free, ", mib(in_use), " are in use here");
  }
  stats_.cached += static_cast<int64_t>(got);
  if (is_large(bytes)) {
    large_.add(data, got, place);
  } else {
    small_allocations_.insert(data);
    small_[place][bytes].push_back(data);
  }
}

void* DeviceAllocator::allocate(size_t bytes, void* stream) {
  const size_t rounded = size_class(bytes);
  std::unique_lock lock(mutex_);
  const uint64_t pool = open_pool_ != 0 && stream == pool_stream_ ? open_pool_ : 0;
  const MemoryPlace place{.stream = pool != 0 ? nullptr : stream, .pool = pool};
  const MemoryPlace kept{.stream = stream, .pool = 0};
  void* data = take(place, rounded);
  if (data == nullptr && pool != 0) data = take(kept, rounded);
  if (data == nullptr) {
    grow(kept, rounded, bytes, lock);
    data = take(kept, rounded);
  }
  const size_t size = is_large(rounded) ? large_.size(data) : rounded;
  blocks_[data] = {.bytes = size, .pool = pool};
  ++stats_.requests;
  stats_.cached -= static_cast<int64_t>(size);
  stats_.in_use += static_cast<int64_t>(size);
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
  return data;
}

void DeviceAllocator::give(void* data, size_t bytes, const MemoryPlace& place) {
  if (is_large(bytes)) {
    large_.give(data, place);
  } else {
    small_[place][bytes].push_back(data);
  }
}

void DeviceAllocator::free(void* data, void* stream) noexcept {
  if (data == nullptr) return;
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end()) return;
  const Block block = found->second;
  blocks_.erase(found);
  stats_.in_use -= static_cast<int64_t>(block.bytes);
  stats_.cached += static_cast<int64_t>(block.bytes);
  try {
    give(data, block.bytes, {.stream = block.pool != 0 ? nullptr : stream, .pool = block.pool});
  } catch (const std::bad_alloc&) {
    log(LogLevel::warn, "device memory is not kept for reuse: the host has no memory left");
  }
}

void DeviceAllocator::begin_pool(void* stream) {
  const std::scoped_lock lock(mutex_);
  RB_ASSERT(open_pool_ == 0);
  open_pool_ = ++last_pool_;
  pool_stream_ = stream;
  pool_streams_[open_pool_] = stream;
}

uint64_t DeviceAllocator::end_pool() {
  const std::scoped_lock lock(mutex_);
  const uint64_t pool = open_pool_;
  open_pool_ = 0;
  pool_stream_ = nullptr;
  return pool;
}

void DeviceAllocator::release_pool(uint64_t pool) noexcept {
  const std::scoped_lock lock(mutex_);
  for (auto& [data, block] : blocks_) {
    if (block.pool == pool) block.pool = 0;
  }
  const auto stream = pool_streams_.find(pool);
  if (stream == pool_streams_.end()) return;
  const MemoryPlace to{.stream = stream->second, .pool = 0};
  pool_streams_.erase(stream);
  move_locked({.stream = nullptr, .pool = pool}, to);
}

void DeviceAllocator::move_stream(void* from, void* to) noexcept {
  const std::scoped_lock lock(mutex_);
  move_locked({.stream = from, .pool = 0}, {.stream = to, .pool = 0});
}

void DeviceAllocator::move_locked(const MemoryPlace& from, const MemoryPlace& to) noexcept {
  try {
    large_.move(from, to);
    if (const auto lists = small_.find(from); lists != small_.end()) {
      for (const auto& [bytes, list] : lists->second) {
        std::vector<void*>& kept = small_[to][bytes];
        kept.insert(kept.end(), list.begin(), list.end());
      }
      small_.erase(from);
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::warn, "device memory is not kept for reuse: the host has no memory left");
  }
}

void DeviceAllocator::trim_locked() noexcept {
  ++stats_.times_trimmed;
  const auto give_back = [&](void* data, size_t bytes) {
    stats_.cached -= static_cast<int64_t>(bytes);
    driver_.free(data);  // waits for the work that uses it
  };
  for (auto lists = small_.begin(); lists != small_.end();) {
    if (lists->first.pool != 0) {
      ++lists;
      continue;
    }
    for (const auto& [bytes, list] : lists->second) {
      for (void* data : list) {
        small_allocations_.erase(data);
        give_back(data, bytes);
      }
    }
    lists = small_.erase(lists);
  }
  for (const auto& [data, bytes] : large_.take_free_segments()) give_back(data, bytes);
}

AllocatorStats DeviceAllocator::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

void DeviceAllocator::reset_peak() {
  const std::scoped_lock lock(mutex_);
  stats_.peak_in_use = stats_.in_use;
}

}  // namespace rbee::gpu
