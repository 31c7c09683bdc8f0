#include "backends/cpu/region_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "backends/cpu/system/system.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

uintptr_t address(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data);
}

std::byte* rounded_up(std::byte* data, size_t to) {
  return data + (to - address(data) % to) % to;
}

std::byte* rounded_down(std::byte* data, size_t to) {
  return data - address(data) % to;
}

}  // namespace

void* map_pages(size_t bytes, size_t alignment) {
  // Small pieces cannot hold a huge page.
  const size_t slack = bytes >= kHugePage ? alignment : 0;
  void* raw =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (slack == 0) return raw;
  auto* start = static_cast<std::byte*>(raw);
  std::byte* data = rounded_up(start, alignment);
  const auto skip = static_cast<size_t>(data - start);
  if (skip > 0) munmap(start, skip);
  if (slack > skip) munmap(data + bytes, slack - skip);
  return data;
}

void want_huge_pages(void* data, size_t bytes) {
  auto* begin = static_cast<std::byte*>(data);
  std::byte* first = rounded_down(begin, kHugePage);
  std::byte* last = rounded_up(begin + bytes, kHugePage);
  prefer_huge_pages(first, static_cast<size_t>(last - first));
}

bool RegionHeap::together(const std::byte* a, const std::byte* b) {
  return address(a) / kRegion == address(b) / kRegion;
}

void* RegionHeap::allocate(size_t bytes) {
  RB_ASSERT(bytes > 0 && bytes % kPage == 0 && bytes <= kRegion);
  auto gap = std::ranges::find_if(gaps_, [&](const auto& entry) { return entry.second >= bytes; });
  if (gap == gaps_.end()) {
    auto* region = static_cast<std::byte*>(map_pages(kRegion, kRegion));
    if (region == nullptr) return nullptr;
    ++regions_;
    gap = gaps_.emplace(region, kRegion).first;
  }
  const auto [data, room] = *gap;
  gaps_.erase(gap);
  if (room > bytes) gaps_.emplace(data + bytes, room - bytes);
  return data;
}

void RegionHeap::free(void* freed, size_t bytes) noexcept {
  auto* data = static_cast<std::byte*>(freed);
  std::byte* begin = data;
  std::byte* end = data + bytes;
  auto next = gaps_.lower_bound(data);
  if (next != gaps_.end() && next->first == end && together(next->first, data)) {
    end += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == data && together(before->first, data)) {
      begin = before->first;
      gaps_.erase(before);
    }
  }
  if (begin + kRegion == end) {
    munmap(begin, kRegion);
    --regions_;
    return;
  }
  gaps_.emplace(begin, static_cast<size_t>(end - begin));
  std::byte* first = std::max(rounded_up(begin, kHugePage), rounded_down(data, kHugePage));
  std::byte* last = std::min(rounded_down(end, kHugePage), rounded_up(data + bytes, kHugePage));
  if (first < last) give_back_pages(first, static_cast<size_t>(last - first));
}

}  // namespace rbee::cpu
