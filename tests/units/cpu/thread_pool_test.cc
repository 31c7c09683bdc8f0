#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

TEST(ThreadPool, ParallelForCoversEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 7, 100, 4099}) {
      for (const int64_t grain : {0, 1, 16, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
          ASSERT_LE(0, thread);
          ASSERT_LT(thread, threads);
          ASSERT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const std::atomic<int>& count : seen) ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, SharesCoverEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 7, 100, 4099}) {
      for (const int64_t grain : {0, 1, 16, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        pool.parallel_shares(n, grain, [&](int64_t begin, int64_t end, int thread) {
          ASSERT_LE(0, thread);
          ASSERT_LT(thread, threads);
          ASSERT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const std::atomic<int>& count : seen) ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

// Each thread is held in its first range until all have begun.
TEST(ThreadPool, AThreadBeginsWithItsOwnShare) {
  constexpr int kThreads = 3;
  ThreadPool pool(kThreads);
  std::vector<std::atomic<int64_t>> first(kThreads);
  for (std::atomic<int64_t>& begin : first) begin = -1;
  std::atomic<int> begun{0};
  pool.parallel_shares(300, 1, [&](int64_t begin, int64_t, int thread) {
    if (first[static_cast<size_t>(thread)] >= 0) return;
    first[static_cast<size_t>(thread)] = begin;
    ++begun;
    while (begun < kThreads) std::this_thread::yield();
  });
  for (int64_t t = 0; t < kThreads; ++t) EXPECT_EQ(first[static_cast<size_t>(t)], t * 100);
}

// One thread waits until another has taken a part of its share.
TEST(ThreadPool, WhoIsDoneHelpsTheOthers) {
  ThreadPool pool(2);
  std::atomic<bool> helped{false};
  pool.parallel_shares(100, 1, [&](int64_t begin, int64_t, int thread) {
    if (thread == 1 && begin < 50) helped = true;
    while (thread == 0 && !helped) std::this_thread::yield();
  });
  EXPECT_TRUE(helped);
}

TEST(ThreadPool, RangesAreNotShorterThanTheGrain) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::vector<int64_t> lengths;
  pool.parallel_for(1000, 64, [&](int64_t begin, int64_t end, int) {
    const std::lock_guard lock(mutex);
    lengths.push_back(end - begin);
  });
  EXPECT_GT(lengths.size(), 1u);
  for (size_t i = 0, shorter = 0; i < lengths.size(); ++i) {
    shorter += lengths[i] < 64;
    EXPECT_LE(shorter, 1u);
  }
}

TEST(ThreadPool, SmallWorkStaysOnTheCallingThread) {
  ThreadPool pool(4);
  const std::thread::id caller = std::this_thread::get_id();
  pool.parallel_for(10, 10, [&](int64_t begin, int64_t end, int thread) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 10);
    EXPECT_EQ(thread, 0);
  });
}

TEST(ThreadPool, RunOnAllRunsEachThreadOnceAndBarriersMeet) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> before{0};
      std::atomic<int> late{0};
      std::vector<int> seen(static_cast<size_t>(threads));
      pool.run_on_all([&](int thread) {
        ++seen[static_cast<size_t>(thread)];
        ++before;
        pool.barrier();
        if (before.load() != threads) ++late;
        pool.barrier();
      });
      ASSERT_EQ(late.load(), 0);
      for (int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, NestedWorkRunsInlineOnTheSameThread) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.run_on_all([&](int outer) {
    const std::thread::id here = std::this_thread::get_id();
    pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end, int inner) {
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), here);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total.load(), 3000);
}

TEST(ThreadPool, ARegionInsideARegionIsAnError) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run_on_all([&](int) { pool.run_on_all([](int) {}); }), Error);
}

TEST(ThreadPool, TheFirstExceptionReachesTheCallerAndThePoolGoesOn) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.parallel_for(100, 1,
                                   [](int64_t begin, int64_t, int) {
                                     if (begin > 10) throw std::runtime_error("bad range");
                                   }),
                 std::runtime_error);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    ASSERT_EQ(sum.load(), 100);
  }
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        pool.parallel_for(64, 4, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 300 * 64);
}

TEST(ThreadPool, WorkersThatFellAsleepWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far beyond the spinning
    std::mutex mutex;
    std::set<int> seen;
    pool.run_on_all([&](int thread) {
      const std::lock_guard lock(mutex);
      seen.insert(thread);
    });
    EXPECT_EQ(seen.size(), 2u);
  }
}

TEST(ThreadPool, BadThreadCountsAreErrors) {
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(1025), Error);
}

}  // namespace
}  // namespace rbee::cpu
