#include "backends/cpu/caching_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

constexpr size_t kAlignment = 64;

struct SizeClass {
  int index;
  size_t bytes;
};

// The smallest of 64, 80, 96, 112, 128, 160, ... that holds `bytes`, rounded up to the alignment.
SizeClass size_class(size_t bytes) {
  bytes = std::max(bytes, kAlignment);
  const int octave = std::bit_width(bytes - 1) - 1;  // bytes in (2^octave, 2^(octave + 1)]
  if (octave < 6) return {0, kAlignment};
  const size_t step = size_t{1} << (octave - 2);
  const size_t base = size_t{1} << octave;
  const size_t quarter = (bytes - base + step - 1) / step;  // 1 to 4
  const size_t size = base + quarter * step;
  return {(octave - 6) * 4 + static_cast<int>(quarter),
          (size + kAlignment - 1) / kAlignment * kAlignment};
}

// The system takes the pages when it wants memory, unless they are written to before.
void offer_to_system(void* data, size_t bytes) noexcept {
  madvise(data, bytes, MADV_FREE);
}

size_t round_to_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

CachingAllocator::~CachingAllocator() {
  trim();
}

void* CachingAllocator::take_pages(size_t bytes) {
  if (bytes <= kLargestInRegion) return regions_.allocate(bytes);
  void* data = map_pages(bytes);
  if (data != nullptr) want_huge_pages(data, bytes);
  return data;
}

void CachingAllocator::give_pages(void* data, size_t bytes) noexcept {
  if (bytes > kLargestInRegion) {
    munmap(data, bytes);
  } else {
    regions_.free(data, bytes);
  }
}

void* CachingAllocator::take_cached_large(size_t bytes) {
  const auto found = large_.lower_bound(bytes);
  if (found == large_.end() || found->first > bytes + bytes / 4) return nullptr;
  void* data = found->second.data;
  stats_.cached -= found->first;
  stats_.in_use += found->first;
  mapped_.emplace(data, found->first);
  large_.erase(found);
  return data;
}

void* CachingAllocator::allocate(size_t bytes) {
  // Also keeps the rounding below from overflowing.
  check(bytes <= SIZE_MAX / 4, "allocate", bytes, " bytes are more than can be addressed");
  const bool small = bytes <= kLargestSmall;
  const SizeClass fit = small ? size_class(bytes) : SizeClass{0, round_to_pages(bytes)};
  const std::lock_guard lock(mutex_);
  void* data = nullptr;
  if (small) {
    std::vector<void*>& kept = small_[fit.index];
    if (!kept.empty()) {
      data = kept.back();
      kept.pop_back();
      stats_.cached -= fit.bytes;
    } else {
      data = std::aligned_alloc(kAlignment, fit.bytes);
    }
    if (data != nullptr) stats_.in_use += fit.bytes;
  } else {
    data = take_cached_large(fit.bytes);
    if (data == nullptr) {
      drop_large_above(kept_limit(stats_.in_use + fit.bytes));
      data = take_pages(fit.bytes);
      if (data == nullptr) {
        trim_locked();
        data = take_pages(fit.bytes);
      }
      if (data != nullptr) {
        mapped_.emplace(data, fit.bytes);
        stats_.in_use += fit.bytes;
      }
    }
  }
  if (data == nullptr) {
    fail(Code::out_of_memory, "allocate", bytes, " bytes of host memory are not to be had, ",
         stats_.in_use, " are in use");
  }
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  return data;
}

void CachingAllocator::free(void* data, size_t bytes) noexcept {
  if (data == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (bytes <= kLargestSmall) {
    const SizeClass fit = size_class(bytes);
    stats_.in_use -= fit.bytes;
    if (!make_room(fit.bytes)) return std::free(data);
    stats_.cached += fit.bytes;
    small_[fit.index].push_back(data);
    return;
  }
  const auto found = mapped_.find(data);
  const size_t size = found->second;
  mapped_.erase(found);
  stats_.in_use -= size;
  if (!make_room(size)) {
    give_pages(data, size);
    return;
  }
  stats_.cached += size;
  if (stats_.cached > cache_limit_ && size > kLargestInRegion) offer_to_system(data, size);
  large_.emplace(size, Freed{data, frees_++});
}

size_t CachingAllocator::kept_limit(size_t in_use) const noexcept {
  return std::max(cache_limit_, stats_.peak - std::min(stats_.peak, in_use));
}

void CachingAllocator::drop_large_above(size_t limit) noexcept {
  while (stats_.cached > limit && !large_.empty()) {
    const auto oldest =
        std::ranges::min_element(large_, {}, [](const auto& entry) { return entry.second.order; });
    stats_.cached -= oldest->first;
    give_pages(oldest->second.data, oldest->first);
    large_.erase(oldest);
  }
}

bool CachingAllocator::make_room(size_t bytes) noexcept {
  const size_t limit = kept_limit(stats_.in_use);
  if (bytes > limit) return false;
  drop_large_above(limit - bytes);
  if (stats_.cached + bytes > limit) drop_small();
  return true;
}

void CachingAllocator::trim() noexcept {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void CachingAllocator::trim_locked() noexcept {
  for (const auto& [size, freed] : large_) {
    give_pages(freed.data, size);
    stats_.cached -= size;
  }
  large_.clear();
  drop_small();
}

// Large pieces are gone already: nothing is left.
void CachingAllocator::drop_small() noexcept {
  for (std::vector<void*>& kept : small_) {
    for (void* data : kept) std::free(data);
    kept.clear();
  }
  stats_.cached = 0;
}

CachingAllocator::Stats CachingAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace rbee::cpu
