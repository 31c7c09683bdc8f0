// The memory that ranks share: how waits end, and what is not taken for it.

#include "backends/cpu/group_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/rank_threads.h"

namespace rbee::cpu {
namespace {

using testing::HasSubstr;

constexpr GroupMemory::Turn kTurn{.kind = 1, .bytes = 8};

std::string end_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::device);
    return error.what();
  }
  return "it has not ended";
}

TEST(GroupMemory, AWaitEndsAtItsLimitAndNamesTheRank) {
  const harness::RankThreads group(3);
  group.memory(0).set_time_limit(std::chrono::milliseconds(10));
  EXPECT_THAT(end_of([&] { group.memory(0).meet(kTurn); }),
              HasSubstr("rank 1 did not come within 10 ms"));
  // For all ranks, and for good.
  EXPECT_THAT(end_of([&] { group.memory(2).meet(kTurn); }), HasSubstr("rank 1 did not come"));
  EXPECT_TRUE(group.memory(1).ended());
}

TEST(GroupMemory, AnEndWakesAllThatWait) {
  const harness::RankThreads group(3);
  std::atomic<int> waiting = 0;
  std::vector<std::string> ends(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ++waiting;
      ends[static_cast<size_t>(rank)] = end_of([&] { group.memory(rank).meet(kTurn); });
    });
  }
  while (waiting < 2) std::this_thread::yield();
  group.memory(2).end("out of memory");
  group.memory(2).end("a later reason");
  for (std::thread& thread : threads) thread.join();
  for (const std::string& end : ends) EXPECT_THAT(end, HasSubstr("ended: out of memory"));
}

TEST(GroupMemory, LongReasonsAreCut) {
  const harness::RankThreads group(2);
  group.memory(1).end(std::string(5000, 'x'));
  EXPECT_LT(end_of([&] { group.memory(0).meet(kTurn); }).size(), 400U);
}

TEST(GroupMemory, RanksThatAreNotThere) {
  for (const int ranks : {-1, 0, 1, 257}) {
    harness::expect_error("group", cat("ranks is ", ranks).c_str(), "2 to 256",
                          [&] { GroupMemory::create(ranks); });
  }
  const int fd = GroupMemory::create(2);
  for (const int rank : {-1, 2}) {
    harness::expect_error("group", cat("rank is ", rank).c_str(), "0 to 1",
                          [&] { GroupMemory::attach(fd, rank); });
  }
  const auto first = GroupMemory::attach(fd, 1);
  EXPECT_THAT(end_of([&] { GroupMemory::attach(fd, 1); }), HasSubstr("attached already"));
  close(fd);
}

TEST(GroupMemory, OtherFilesAreRefused) {
  const auto refused = [](int fd) {
    harness::expect_error("group", "descriptor", "no memory of a group",
                          [&] { GroupMemory::attach(fd, 0); });
  };
  refused(-1);
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  refused(empty);
  ASSERT_EQ(ftruncate(empty, 1 << 20), 0);
  refused(empty);
  close(empty);
  const int cut = GroupMemory::create(2);
  ASSERT_EQ(ftruncate(cut, 1 << 16), 0);
  refused(cut);
  close(cut);
}

}  // namespace
}  // namespace rbee::cpu
