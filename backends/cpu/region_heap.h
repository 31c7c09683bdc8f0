#pragma once
// Memory of middling size, side by side in regions, so that the weights of a small model, read from
// end to end for each token, can lie in huge pages.

#include <cstddef>
#include <map>

namespace rbee::cpu {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed pages from the system, from kHugePage on at a multiple of `alignment` (a power of two,
// kHugePage at least); null where there are none.
void* map_pages(size_t bytes, size_t alignment = kHugePage);

// Asks for huge pages for everything of which these bytes are a part, before they are written: what
// is written bit by bit, as caches are, would have all of its memory at once.
void want_huge_pages(void* data, size_t bytes);

// Not for several threads at once. What is in use when it is destroyed stays.
class RegionHeap {
 public:
  static constexpr size_t kRegion = size_t{32} << 20;

  RegionHeap() = default;
  RegionHeap(const RegionHeap&) = delete;
  RegionHeap& operator=(const RegionHeap&) = delete;

  // A multiple of kPage, kRegion at most; the lowest place that has room. Null where the system
  // gives no more.
  void* allocate(size_t bytes);
  // Huge pages of which nothing is in use go back to the system.
  void free(void* data, size_t bytes) noexcept;

  size_t regions() const { return regions_; }

 private:
  // Whether both are of one region.
  static bool together(const std::byte* a, const std::byte* b);

  std::map<std::byte*, size_t> gaps_;  // bytes by address; no two of a region touch
  size_t regions_ = 0;
};

}  // namespace rbee::cpu
