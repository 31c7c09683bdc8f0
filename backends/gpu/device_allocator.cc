#include "backends/gpu/device_allocator.h"

#include <algorithm>
#include <bit>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::gpu {
namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMiB = size_t{1} << 20;

// Sizes are rounded up so that similar requests share blocks: four classes for each power of two up
// to 512 KiB, sixteen up to 32 MiB, where weights would lose a tenth of their memory to four, and
// whole MiB above.
size_t size_class(size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  if (bytes > 32 * kMiB) return (bytes + kMiB - 1) / kMiB * kMiB;
  const size_t classes = bytes > kMiB / 2 ? 16 : 4;
  const size_t step = std::max(std::bit_floor(bytes - 1) / classes, kAlignment);
  return (bytes + step - 1) / step * step;
}

std::string mib(int64_t bytes) {
  return cat(bytes / static_cast<int64_t>(kMiB), " MiB");
}

}  // namespace

DeviceAllocator::~DeviceAllocator() {
  for (auto& [data, block] : blocks_) driver_.free(data);
}

void* DeviceAllocator::take_cached(const Place& place, size_t bytes) {
  const auto lists = cached_.find(place);
  if (lists == cached_.end()) return nullptr;
  const auto list = lists->second.find(bytes);
  if (list == lists->second.end() || list->second.empty()) return nullptr;
  void* data = list->second.back();
  list->second.pop_back();
  if (list->second.empty()) lists->second.erase(list);
  stats_.cached -= static_cast<int64_t>(bytes);
  return data;
}

void* DeviceAllocator::allocate_new(size_t bytes, size_t wanted,
                                    std::unique_lock<std::mutex>& lock) {
  driver_.use(ordinal_);
  ++stats_.driver_calls;
  try {
    return driver_.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
  }
  trim_locked();
  try {
    return driver_.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    const int64_t in_use = stats_.in_use;
    lock.unlock();
    const MemoryInfo memory = driver_.memory();
    fail(Code::out_of_memory, "allocate", mib(static_cast<int64_t>(wanted)), " (", wanted,
         " bytes) on ", rbee::name(driver_.kind()), ':', ordinal_, ": ", mib(memory.free), " of ",
         mib(memory.total), " are free, ", mib(in_use), " are in use here");
  }
}

void* DeviceAllocator::allocate(size_t bytes, void* stream) {
  const size_t rounded = size_class(bytes);
  std::unique_lock lock(mutex_);
  const uint64_t pool = open_pool_ != 0 && stream == pool_stream_ ? open_pool_ : 0;
  const Place place{.stream = pool != 0 ? nullptr : stream, .pool = pool};
  void* data = take_cached(place, rounded);
  if (data == nullptr && pool != 0) {
    data = take_cached({.stream = stream, .pool = 0}, rounded);
    if (data != nullptr) blocks_[data].pool = pool;
  }
  if (data == nullptr) {
    data = allocate_new(rounded, bytes, lock);
    blocks_[data] = {.bytes = rounded, .pool = pool};
  }
  ++stats_.requests;
  stats_.in_use += static_cast<int64_t>(rounded);
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
  return data;
}

void DeviceAllocator::free(void* data, void* stream) noexcept {
  if (data == nullptr) return;
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end()) return;
  const Block& block = found->second;
  stats_.in_use -= static_cast<int64_t>(block.bytes);
  stats_.cached += static_cast<int64_t>(block.bytes);
  const Place place{.stream = block.pool != 0 ? nullptr : stream, .pool = block.pool};
  try {
    cached_[place][block.bytes].push_back(data);
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
  const auto lists = cached_.find(Place{.stream = nullptr, .pool = pool});
  if (lists != cached_.end()) {
    try {
      FreeLists& kept = cached_[{.stream = stream->second, .pool = 0}];
      for (const auto& [bytes, list] : lists->second) {
        kept[bytes].insert(kept[bytes].end(), list.begin(), list.end());
      }
      cached_.erase(lists);
    } catch (const std::bad_alloc&) {
      log(LogLevel::warn, "device memory is not kept for reuse: the host has no memory left");
    }
  }
  pool_streams_.erase(stream);
}

void DeviceAllocator::trim_locked() noexcept {
  ++stats_.times_trimmed;
  for (auto lists = cached_.begin(); lists != cached_.end();) {
    if (lists->first.pool != 0) {
      ++lists;
      continue;
    }
    for (const auto& [bytes, list] : lists->second) {
      for (void* data : list) {
        stats_.cached -= static_cast<int64_t>(bytes);
        blocks_.erase(data);
        driver_.free(data);  // waits for the work that uses it
      }
    }
    lists = cached_.erase(lists);
  }
}

void DeviceAllocator::trim() noexcept {
  const std::scoped_lock lock(mutex_);
  trim_locked();
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
