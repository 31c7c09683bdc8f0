#include "backends/cpu/region_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace rbee::cpu {
namespace {

TEST(RegionHeap, PiecesLieSideBySideFromTheStartOfAHugePage) {
  RegionHeap heap;
  auto* first = static_cast<std::byte*>(heap.allocate(3 * kPage));
  auto* second = static_cast<std::byte*>(heap.allocate(kPage));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kHugePage, 0u);
  EXPECT_EQ(second, first + 3 * kPage);
  EXPECT_EQ(heap.regions(), 1u);
  heap.free(first, 3 * kPage);
  EXPECT_EQ(heap.allocate(2 * kPage), first);  // the lowest place again
  EXPECT_EQ(heap.allocate(2 * kPage), second + kPage);
}

TEST(RegionHeap, GivesARegionBackWhenNothingOfItIsInUse) {
  RegionHeap heap;
  const size_t half = RegionHeap::kRegion / 2;
  void* a = heap.allocate(half);
  void* b = heap.allocate(half);
  void* c = heap.allocate(kPage);
  EXPECT_EQ(heap.regions(), 2u);
  heap.free(b, half);
  EXPECT_EQ(heap.regions(), 2u);
  heap.free(a, half);
  EXPECT_EQ(heap.regions(), 1u);
  heap.free(c, kPage);
  EXPECT_EQ(heap.regions(), 0u);
}

TEST(RegionHeap, FreedHugePagesGoBackToTheSystem) {
  RegionHeap heap;
  const size_t bytes = 3 * kHugePage;
  void* before = heap.allocate(kPage);
  auto* data = static_cast<unsigned char*>(heap.allocate(bytes));
  void* behind = heap.allocate(kPage);
  std::memset(data, 0x5a, bytes);
  heap.free(data, bytes);
  ASSERT_EQ(heap.allocate(bytes), data);
  EXPECT_EQ(data[2 * kHugePage], 0);  // zeroed by the system
  heap.free(data, bytes);
  heap.free(before, kPage);
  heap.free(behind, kPage);
}

TEST(RegionHeap, PiecesNeverOverlapAndKeepWhatIsInThem) {
  RegionHeap heap;
  struct Piece {
    size_t bytes;
    unsigned char mark;
  };
  std::map<unsigned char*, Piece> live;
  std::minstd_rand random(5);
  for (int i = 0; i < 3000; ++i) {
    if (live.size() < 40 || random() % 2 == 0) {
      const size_t bytes = (random() % 300 + 1) * kPage;
      auto* data = static_cast<unsigned char*>(heap.allocate(bytes));
      ASSERT_NE(data, nullptr);
      const auto above = live.lower_bound(data);
      ASSERT_TRUE(above == live.end() || data + bytes <= above->first);
      if (above != live.begin()) {
        const auto below = std::prev(above);
        ASSERT_LE(below->first + below->second.bytes, data);
      }
      const auto mark = static_cast<unsigned char>(random());
      data[0] = data[bytes / 2] = data[bytes - 1] = mark;
      live.emplace(data, Piece{bytes, mark});
      continue;
    }
    const auto gone = std::next(live.begin(), static_cast<ptrdiff_t>(random() % live.size()));
    const auto [data, piece] = *gone;
    ASSERT_EQ(data[0], piece.mark);
    ASSERT_EQ(data[piece.bytes / 2], piece.mark);
    ASSERT_EQ(data[piece.bytes - 1], piece.mark);
    heap.free(data, piece.bytes);
    live.erase(gone);
  }
  for (const auto& [data, piece] : live) heap.free(data, piece.bytes);
  EXPECT_EQ(heap.regions(), 0u);
}

}  // namespace
}  // namespace rbee::cpu
