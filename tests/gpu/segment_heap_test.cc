// Segments are cut to size, and freed neighbours are one block again.
#include "backends/gpu/segment_heap.h"

#include <gtest/gtest.h>

#include <random>

namespace rbee::gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::byte* address(size_t megabytes) {
  return reinterpret_cast<std::byte*>(megabytes * kMiB);
}

class SegmentHeapTest : public ::testing::Test {
 protected:
  SegmentHeapTest() { heap_.add(address(100), 64 * kMiB, place_); }

  SegmentHeap heap_;
  int streams_[2] = {};
  const MemoryPlace place_{.stream = &streams_[0]}, other_{.stream = &streams_[1]};
  const MemoryPlace pool_{.pool = 1};
};

TEST_F(SegmentHeapTest, CutsTheSmallestBlockThatServes) {
  heap_.add(address(500), 8 * kMiB, place_);
  EXPECT_EQ(heap_.take(place_, 6 * kMiB), address(500));
  EXPECT_EQ(heap_.size(address(500)), 6 * kMiB);
  EXPECT_EQ(heap_.take(place_, 2 * kMiB), address(506));
  EXPECT_EQ(heap_.take(place_, 3 * kMiB), address(100));
  EXPECT_EQ(heap_.take(place_, 62 * kMiB), nullptr);
  EXPECT_EQ(heap_.take(other_, kMiB), nullptr) << "nothing is free for another stream";
}

TEST_F(SegmentHeapTest, KeepsARestThatWouldServeNobody) {
  EXPECT_EQ(heap_.take(place_, 64 * kMiB - 512), address(100));
  EXPECT_EQ(heap_.size(address(100)), 64 * kMiB);
}

TEST_F(SegmentHeapTest, JoinsFreedNeighboursInAnyOrder) {
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}}) {
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(heap_.take(place_, 10 * kMiB), address(100 + 10 * i));
    }
    for (const int i : order) heap_.give(address(100 + 10 * static_cast<size_t>(i)), place_);
    ASSERT_EQ(heap_.take(place_, 64 * kMiB), address(100));
    heap_.give(address(100), place_);
  }
}

TEST_F(SegmentHeapTest, BlocksOfAPoolStayApartUntilTheyAreMoved) {
  EXPECT_EQ(heap_.take(place_, 10 * kMiB), address(100));
  heap_.give(address(100), pool_);
  EXPECT_EQ(heap_.take(place_, 60 * kMiB), nullptr);
  EXPECT_TRUE(heap_.take_free_segments().empty()) << "a capture may write to it at any time";
  heap_.move(pool_, place_);
  EXPECT_EQ(heap_.take(place_, 64 * kMiB), address(100));
}

TEST_F(SegmentHeapTest, GivesBackSegmentsThatAreFreeAsAWhole) {
  heap_.add(address(500), 8 * kMiB, place_);
  EXPECT_EQ(heap_.take(place_, kMiB), address(500));
  const auto freed = heap_.take_free_segments();
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(freed[0], std::pair(static_cast<void*>(address(100)), 64 * kMiB));
  EXPECT_EQ(heap_.segments(), std::vector<void*>{address(500)});
}

// In any order of calls, blocks never overlap, and in the end all of them merge into one.
TEST_F(SegmentHeapTest, RandomUseLosesNothing) {
  std::mt19937 random(7);
  std::map<std::byte*, size_t> held;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0) {
      auto* data = static_cast<std::byte*>(heap_.take(place_, (1 + random() % 6000) * 512));
      if (data == nullptr) continue;
      const auto behind = held.upper_bound(data);
      ASSERT_TRUE(behind == held.end() || data + heap_.size(data) <= behind->first);
      ASSERT_TRUE(behind == held.begin() ||
                  std::prev(behind)->first + std::prev(behind)->second <= data);
      held[data] = heap_.size(data);
    } else if (!held.empty()) {
      const auto one = std::next(held.begin(), static_cast<long>(random() % held.size()));
      heap_.give(one->first, place_);
      held.erase(one);
    }
  }
  for (const auto& [data, bytes] : held) heap_.give(data, place_);
  EXPECT_EQ(heap_.take(place_, 64 * kMiB), address(100));
}

}  // namespace
}  // namespace rbee::gpu
