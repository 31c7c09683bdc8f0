#include "rbee/engine/text/step/kv_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
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

// A slot comes with the first block and goes with the last one.
TEST(KvTable, HasASlotOfStatesWhileItHasBlocks) {
  KvBlockPool pool(6, 8);
  EXPECT_FALSE(pool.has_states());
  pool.use_states(2);
  EXPECT_TRUE(pool.has_states());
  KvTable first(pool), second(pool), third(pool);
  EXPECT_EQ(first.state_slot(), -1);
  ASSERT_TRUE(first.reserve(8));
  const int32_t slot = first.state_slot();
  ASSERT_TRUE(first.reserve(16));
  EXPECT_EQ(first.state_slot(), slot);
  ASSERT_TRUE(second.reserve(8));
  EXPECT_EQ((std::set{slot, second.state_slot()}), (std::set<int32_t>{0, 1}));
  EXPECT_FALSE(third.reserve(8)) << "there are blocks, but no slot";
  EXPECT_EQ(pool.used(), 3);
  EXPECT_FALSE(second.reserve(48)) << "too many blocks";
  first.release();
  EXPECT_EQ(first.state_slot(), -1);
  ASSERT_TRUE(third.reserve(8));
  EXPECT_EQ(third.state_slot(), slot);
}

// The states at the end of a beginning are gone when another text would go on from there.
TEST(KvTable, WithStatesFindsNoBlocksOfOthers) {
  KvBlockPool pool(6, 4);
  pool.use_states(2);
  const std::vector<int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9};
  KvTable first(pool), second(pool);
  ASSERT_TRUE(first.reserve(9));
  first.publish(tokens);
  EXPECT_EQ(second.adopt(tokens), 0);
  first.release();
  EXPECT_EQ(pool.kept(), 0);
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

std::string hex(const BlockHash& hash) {
  std::string out;
  for (const uint8_t byte : hash) {
    for (const int digit : {byte >> 4, byte & 15}) out += "0123456789abcdef"[digit];
  }
  return out;
}

// Expected by Python: sha256(cbor2.dumps((before, tokens, extra), canonical=True)) with cbor2,
// where `before` of the first block is sha256(cbor2.dumps("0")), as vLLM does.
TEST(KvEvents, HashesAreThoseOfVllm) {
  const BlockEvents events("0");
  const std::vector<int32_t> one{1, 2, 300, 70000}, two{5, 6, 7, 8};
  const BlockNamePtr first = events.name(nullptr, one, {});
  EXPECT_EQ(hex(first->hash), "0bd7b58f2ebe08691f697f880e09dffc2d55c4f30d92bec1101e1ec2751812af");
  EXPECT_EQ(first->parent, std::nullopt);
  const BlockNamePtr second = events.name(first.get(), two, {});
  EXPECT_EQ(hex(second->hash), "a4490e66739d4735ae853700e3e29653ba88bce40957cd6fb6852d4786f8d394");
  EXPECT_EQ(second->parent, first->hash);
  const TextScope scope{.lora = "ada", .salt = "salt"};
  const BlockNamePtr other = events.name(nullptr, one, scope);
  EXPECT_EQ(hex(other->hash), "00bf531651926da60d92c6376fc39acb6353baaca9e3bc9412bc2ea559934382");
  EXPECT_EQ(hex(events.name(other.get(), two, scope)->hash),
            "d7fee15b9765b8b0ab508ae8dee1f3382ce8b2ee8f9fd914d92732092182f8e6");
  EXPECT_NE(BlockEvents("1").name(nullptr, one, {})->hash, first->hash);
}

TEST(KvEvents, TellOfTextsThatComeAndGo) {
  KvBlockPool pool(3, 2);
  BlockEvents events("0");
  pool.use_events(events);
  KvTable table(pool);
  table.set_mark({-2, 'x'});
  table.set_scope({.lora = "", .salt = "x"});
  fill(table, {1, 2, 3, 4, 5});
  std::vector<KvEvent> told = events.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, KvEvent::Kind::stored);
  EXPECT_EQ(told[0].medium, KvMedium::device);
  EXPECT_EQ(told[0].parent, std::nullopt);
  EXPECT_EQ(told[0].tokens, (std::vector<int32_t>{1, 2, 3, 4}));  // without the mark
  EXPECT_EQ(told[0].block_size, 2);
  ASSERT_EQ(told[0].hashes.size(), 2u);
  const std::vector<BlockHash> hashes = told[0].hashes;
  table.release();
  EXPECT_TRUE(events.take().empty());
  KvTable same(pool);
  same.set_mark({-2, 'x'});
  EXPECT_EQ(same.adopt(std::vector<int32_t>{1, 2, 3, 4, 9}), 4);
  EXPECT_TRUE(events.take().empty());
  same.release();
  KvTable taker(pool);
  ASSERT_TRUE(taker.reserve(6));
  told = events.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, KvEvent::Kind::removed);
  EXPECT_EQ(told[0].hashes, (std::vector<BlockHash>{hashes[1], hashes[0]}));
}

TEST(KvEvents, TextsWithPicturesHaveNoNames) {
  KvBlockPool pool(4, 2);
  BlockEvents events("0");
  pool.use_events(events);
  KvTable table(pool);
  fill(table, {1, 2, -7, -7, 3, 4});
  const std::vector<KvEvent> told = events.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].tokens, (std::vector<int32_t>{1, 2}));
}

TEST_F(HostCache, EventsTellOfBothPlaces) {
  BlockEvents events("0");
  pool.use_events(events);
  std::map<BlockHash, std::set<KvMedium>> places;
  for (const int32_t first : {100, 200, 300, 100, 100, 300, 200}) {
    run(first);
    for (const KvEvent& event : events.take()) {
      for (const BlockHash& hash : event.hashes) {
        if (event.kind == KvEvent::Kind::stored) {
          EXPECT_TRUE(places[hash].insert(event.medium).second);
        } else {
          EXPECT_EQ(places[hash].erase(event.medium), 1u);
        }
      }
    }
    int64_t in_host = 0;
    for (const auto& [hash, media] : places) in_host += media.contains(KvMedium::host) ? 1 : 0;
    EXPECT_EQ(in_host, pool.host_kept());
  }
}

TEST(KvEventLog, KeepsTheLastBatchesForEachReader) {
  KvEventLog log(2);
  log.add({});
  EXPECT_EQ(log.end(), 0u);
  for (int i = 0; i < 3; ++i) log.add({{.hashes = {BlockHash{static_cast<uint8_t>(i)}}}});
  const auto all = log.from(0, 9);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->sequence, 1u);
  EXPECT_EQ(all[1]->events[0].hashes[0][0], 2);
  EXPECT_EQ(log.from(2, 9).size(), 1u);
  EXPECT_EQ(log.from(1, 1).size(), 1u);
  EXPECT_TRUE(log.from(3, 9).empty());
  EXPECT_TRUE(log.from(UINT64_MAX, 9).empty());
  std::thread reader([&] { log.wait(3, std::chrono::minutes(1)); });
  log.close();
  reader.join();
  EXPECT_TRUE(log.closed());
}

}  // namespace
}  // namespace rbee::engine
