#pragma once
// Places medium-sized memory side by side in regions, so that the weights of a small model, which
// are all read for each token, can be in huge pages.

#include <cstddef>
#include <map>

namespace rbee::cpu {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed pages from the system, from kHugePage on at a multiple of `alignment` (a power of two,
// kHugePage at least); null if the system has none.
void* map_pages(size_t bytes, size_t alignment = kHugePage);

// Requests huge pages for the whole area around these bytes, before they are written. Not for
// memory that fills up slowly, like caches: it would take all its memory at once.
void want_huge_pages(void* data, size_t bytes);

// Not thread-safe. Memory still in use when the heap is destroyed is not freed.
class RegionHeap {
 public:
  static constexpr size_t kRegion = size_t{32} << 20;

  RegionHeap() = default;
  RegionHeap(const RegionHeap&) = delete;
  RegionHeap& operator=(const RegionHeap&) = delete;

  // Takes the lowest place with room. bytes: a multiple of kPage, at most kRegion. Null if the
  // system gives no more memory.
  void* allocate(size_t bytes);
  // Returns huge pages without any use to the system.
  void free(void* data, size_t bytes) noexcept;

  size_t regions() const { return regions_; }

 private:
  // Whether both are of one region.
  static bool together(const std::byte* a, const std::byte* b);

  std::map<std::byte*, size_t> gaps_;  // bytes by address; no two of a region touch
  size_t regions_ = 0;
};

}  // namespace rbee::cpu
