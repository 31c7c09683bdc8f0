#include "rbee/engine/text/step/kv_blocks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <utility>
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

// Blocks and slots hold the number that a test wrote there.
class Copier final : public BlockCopier {
 public:
  Copier(size_t blocks, size_t slots) : block(blocks, -1), slot_(slots, -1) {}
  void copy(std::span<const BlockCopy> copies) override {
    for (const BlockCopy& each : copies) {
      int& here = block[static_cast<size_t>(each.block)];
      int& there = slot_[static_cast<size_t>(each.slot)];
      (each.to_host ? there : here) = each.to_host ? here : there;
    }
    now += std::ssize(copies);
  }
  // As late as it may be.
  void copy_beside(std::span<const BlockCopy> copies) override {
    const std::vector<BlockCopy> earlier = std::exchange(begun_, {copies.begin(), copies.end()});
    copy(earlier);
    now -= std::ssize(earlier);
  }

  std::vector<int> block;
  int64_t now = 0;  // copies that steps waited for

 private:
  std::vector<int> slot_;
  std::vector<BlockCopy> begun_;
};

class HostCache : public testing::Test {
 protected:
  HostCache() { pool.use_host(6, copier); }

  // A text of three blocks and a token; each of its blocks holds the first token of the block.
  static std::vector<int32_t> text(int32_t first) { return count_up(first, 7); }
  void evaluate(KvTable& table, const std::vector<int32_t>& tokens, int64_t found) {
    ASSERT_TRUE(table.reserve(std::ssize(tokens), CopyTime::later));
    settle(table);
    for (size_t i = static_cast<size_t>(found) / 2; i < table.blocks().size(); ++i) {
      copier.block[static_cast<size_t>(table.blocks()[i])] = tokens[2 * i];
    }
    table.publish(tokens);
  }
  int settle(const KvTable& table) {
    int calls = 0;
    for (; !table.ready(); ++calls) pool.copy_some(2);
    return calls;
  }
  // Tokens found; their blocks must hold what was written for the text.
  int64_t run(int32_t first) {
    KvTable table(pool);
    const std::vector<int32_t> tokens = text(first);
    const int64_t found = table.adopt(tokens);
    settle(table);
    for (size_t i = 0; i < static_cast<size_t>(found) / 2; ++i) {
      EXPECT_EQ(copier.block[static_cast<size_t>(table.blocks()[i])], tokens[2 * i]) << i;
    }
    evaluate(table, tokens, found);
    return found;
  }

  Copier copier{4, 6};
  KvBlockPool pool{4, 2};
};

TEST_F(HostCache, TextsThatTheCacheGaveUpAreFoundAgain) {
  EXPECT_EQ(run(100), 0);
  EXPECT_EQ(run(200), 0);
  EXPECT_EQ(pool.host_counts().stored, 3u);
  EXPECT_EQ(run(100), 6);
  EXPECT_EQ(run(200), 6);
  EXPECT_EQ(run(100), 6);
  EXPECT_EQ(pool.host_kept(), 6);
  EXPECT_EQ(pool.host_counts().dropped, 0u);
  // What is there already is not copied again.
  EXPECT_EQ(pool.host_counts().stored, 6u);
  EXPECT_EQ(copier.now, 0);
}

TEST_F(HostCache, TheLongestUnusedIsDroppedAndEndsBeforeBeginnings) {
  for (const int32_t first : {100, 200, 300}) EXPECT_EQ(run(first), 0);
  EXPECT_EQ(pool.host_kept(), 6);
  // A block of 300 goes to host memory: 100, there the longest, loses its last one.
  KvTable other(pool);
  ASSERT_TRUE(other.reserve(4));
  EXPECT_EQ(copier.now, 1);
  EXPECT_EQ(pool.host_counts().dropped, 1u);
  other.release();
  EXPECT_EQ(run(100), 4);
}

// The table that runs needs its block now, whatever waits for others.
TEST_F(HostCache, ATableThatRunsDoesNotWaitForOthersCopies) {
  run(100);
  KvTable joins(pool), runs(pool);
  ASSERT_TRUE(joins.reserve(4, CopyTime::later));
  EXPECT_FALSE(joins.ready());
  ASSERT_TRUE(runs.reserve(2));
  EXPECT_TRUE(runs.ready());
  EXPECT_FALSE(joins.ready());
  EXPECT_EQ(settle(joins), 2);  // begins, and is done
}

TEST_F(HostCache, WhoLeavesBeforeItsCopiesLeavesNoFalseTexts) {
  EXPECT_EQ(run(100), 0);
  EXPECT_EQ(run(200), 0);
  for (int i = 0; i < 3; ++i) {
    KvTable leaves(pool);
    EXPECT_EQ(leaves.adopt(text(100)), 6);
    EXPECT_FALSE(leaves.ready());
    if (i == 1) pool.copy_some(1);
  }
  KvTable next(pool);
  ASSERT_TRUE(next.reserve(8));  // all blocks, at once
  EXPECT_TRUE(next.ready());
  next.release();
  EXPECT_EQ(run(100), 6);
  EXPECT_EQ(run(200), 6);
}

// Else the blocks would come for nothing, and others would go.
TEST_F(HostCache, NothingComesBackForATextThatHasNoRoom) {
  run(100);
  run(200);
  KvTable holds(pool);
  ASSERT_TRUE(holds.reserve(4));
  KvTable table(pool);
  EXPECT_EQ(table.adopt(text(100)), 0);
  EXPECT_TRUE(table.ready());
  EXPECT_EQ(pool.host_counts().loaded, 0u);
}

}  // namespace
}  // namespace rbee::engine
