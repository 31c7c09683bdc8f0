#include "rbee/engine/kv_blocks.h"

#include <gtest/gtest.h>

#include <set>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

TEST(KvTable, GrowsByBlocksAndMapsPositions) {
  KvBlockPool pool(4, 8);
  KvTable table(pool);
  EXPECT_TRUE(table.reserve(1));
  EXPECT_EQ(pool.used(), 1);
  EXPECT_TRUE(table.reserve(8));
  EXPECT_EQ(pool.used(), 1);
  EXPECT_TRUE(table.reserve(9));
  EXPECT_EQ(pool.used(), 2);
  std::set<int32_t> slots;
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(table.slot(i) / 8, table.blocks()[static_cast<size_t>(i / 8)]);
    slots.insert(table.slot(i));
  }
  EXPECT_EQ(slots.size(), 16u);
}

TEST(KvTable, TakesNothingWhenThePoolIsTooSmallAndGivesBack) {
  KvBlockPool pool(3, 8);
  KvTable first(pool);
  EXPECT_TRUE(first.reserve(16));
  {
    KvTable second(pool);
    EXPECT_FALSE(second.reserve(9));
    EXPECT_EQ(pool.used(), 2);
    EXPECT_TRUE(second.reserve(8));
    EXPECT_EQ(pool.used(), 3);
    EXPECT_NE(first.blocks()[0], second.blocks()[0]);
    EXPECT_NE(first.blocks()[1], second.blocks()[0]);
  }
  EXPECT_EQ(pool.used(), 2);
  first.release();
  EXPECT_EQ(pool.used(), 0);
  EXPECT_TRUE(first.reserve(24));
}

TEST(KvBlockPool, RefusesSizesThatSlotsCannotHold) {
  EXPECT_THROW(KvBlockPool(0, 8), Error);
  EXPECT_THROW(KvBlockPool(8, 0), Error);
  EXPECT_THROW(KvBlockPool(int64_t{1} << 31, 1), Error);
}

}  // namespace
}  // namespace rbee::engine
