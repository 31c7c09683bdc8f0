#include "rbee/engine/text/step/kv_blocks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

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

// Reused blocks hold another text: notes about the old one must not count.
TEST(KvTable, NotesWhichTokensADraftModelHas) {
  KvBlockPool pool(2, 8);
  KvTable table(pool);
  ASSERT_TRUE(table.reserve(16));
  table.note_draft(15);
  EXPECT_EQ(table.draft_tokens(), 8);
  table.release();
  ASSERT_TRUE(table.reserve(16));
  EXPECT_EQ(table.draft_tokens(), 0);
  table.note_draft(16);
  EXPECT_EQ(table.draft_tokens(), 16);
}

TEST(KvBlockPool, RefusesSizesThatSlotsCannotHold) {
  EXPECT_THROW(KvBlockPool(0, 8), Error);
  EXPECT_THROW(KvBlockPool(8, 0), Error);
  EXPECT_THROW(KvBlockPool(int64_t{1} << 31, 1), Error);
}

std::vector<int32_t> count_up(int32_t first, size_t count) {
  std::vector<int32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// A table that holds `tokens`, all cached and published.
void fill(KvTable& table, const std::vector<int32_t>& tokens) {
  ASSERT_TRUE(table.reserve(std::ssize(tokens)));
  table.publish(tokens);
}

TEST(PrefixCache, FullBlocksAreSharedWhileTheirFirstOwnerRunsAndAfterwards) {
  KvBlockPool pool(8, 4);
  const std::vector<int32_t> text = count_up(100, 11);  // two full blocks and a part
  KvTable first(pool);
  EXPECT_EQ(first.adopt(text), 0);
  fill(first, text);
  EXPECT_EQ(pool.used(), 3);
  KvTable second(pool);
  EXPECT_EQ(second.adopt(text), 8);
  EXPECT_EQ(second.blocks(),
            std::vector<int32_t>(first.blocks().begin(), first.blocks().end() - 1));
  EXPECT_EQ(pool.used(), 3);
  EXPECT_TRUE(second.reserve(11));
  EXPECT_EQ(pool.used(), 4);
  EXPECT_NE(second.blocks()[2], first.blocks()[2]);
  const std::vector<int32_t> shared = second.blocks();
  first.release();
  EXPECT_EQ(pool.used(), 3);
  second.release();
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(pool.kept(), 2);
  EXPECT_EQ(pool.available(), 8);
  KvTable third(pool);
  EXPECT_EQ(third.adopt(text), 8);
  EXPECT_EQ(third.blocks(), std::vector<int32_t>(shared.begin(), shared.begin() + 2));
  EXPECT_EQ(pool.kept(), 0);
}

TEST(PrefixCache, TheLastTokenIsAlwaysLeftToEvaluate) {
  KvBlockPool pool(8, 4);
  KvTable first(pool);
  fill(first, count_up(0, 8));
  KvTable second(pool), third(pool);
  EXPECT_EQ(second.adopt(count_up(0, 8)), 4);
  EXPECT_EQ(third.adopt(count_up(0, 9)), 8);
}

TEST(PrefixCache, ABlockIsFoundOnlyAfterTheTextBeforeIt) {
  KvBlockPool pool(8, 2);
  KvTable first(pool);
  fill(first, {1, 2, 3, 4, 5, 6});
  KvTable other_start(pool), other_end(pool), in_the_middle(pool);
  EXPECT_EQ(other_start.adopt(std::vector<int32_t>{9, 2, 3, 4, 5, 6, 7}), 0);
  EXPECT_EQ(other_end.adopt(std::vector<int32_t>{1, 2, 3, 4, 5, 9, 7}), 4);
  EXPECT_EQ(in_the_middle.adopt(std::vector<int32_t>{3, 4, 5, 6}), 0);
}

TEST(PrefixCache, KeptBlocksAreTakenTheLongestUnusedFirstAndEndsBeforeBeginnings) {
  KvBlockPool pool(4, 2);
  const std::vector<int32_t> old{1, 2, 3, 4}, recent{5, 6, 7, 8};
  {
    KvTable a(pool), b(pool);
    fill(a, old);
    fill(b, recent);
    a.release();
  }
  EXPECT_EQ(pool.kept(), 4);
  KvTable taker(pool);
  EXPECT_TRUE(taker.reserve(2));
  const auto found = [&](std::vector<int32_t> text) {
    text.push_back(0);
    KvTable table(pool);
    return table.adopt(text);
  };
  EXPECT_EQ(found(old), 2);     // its last block is gone
  EXPECT_EQ(found(recent), 4);  // this was used most recently
  EXPECT_TRUE(taker.reserve(4));
  EXPECT_EQ(found(old), 0);
  EXPECT_EQ(found(recent), 4);
  EXPECT_TRUE(taker.reserve(8));
  EXPECT_EQ(found(recent), 0);
  EXPECT_EQ(pool.kept(), 0);
  EXPECT_EQ(pool.used(), 4);
}

TEST(PrefixCache, EqualTextsOfTwoSequencesAreKeptOnceAndGoOnTogether) {
  KvBlockPool pool(8, 2);
  KvTable a(pool), b(pool);
  fill(a, {1, 2});
  fill(b, {1, 2, 3, 4});  // evaluated at the same time
  a.release();
  b.release();
  EXPECT_EQ(pool.kept(), 2);
  KvTable c(pool);
  EXPECT_EQ(c.adopt(std::vector<int32_t>{1, 2, 3, 4, 5}), 4);
}

TEST(PrefixCache, ATableWithoutBlocksPublishesNothing) {
  KvBlockPool pool(4, 2);
  KvTable table(pool);
  EXPECT_TRUE(table.reserve(4));
  table.release();
  table.publish(std::vector<int32_t>{1, 2, 3, 4});
  EXPECT_EQ(pool.kept(), 0);
  EXPECT_EQ(table.adopt(std::vector<int32_t>{1, 2, 3, 4}), 0);
}

TEST(PrefixCache, WhatIsNotPublishedIsNotKept) {
  KvBlockPool pool(4, 2);
  {
    KvTable table(pool);
    EXPECT_TRUE(table.reserve(4));
    table.publish(std::vector<int32_t>{1, 2, 3});
  }
  EXPECT_EQ(pool.kept(), 1);
  EXPECT_EQ(pool.available(), 4);
}

}  // namespace
}  // namespace rbee::engine
