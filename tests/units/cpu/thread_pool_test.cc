#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

// Whether both threads of the pool take part in a region within 10 s; each runs the body first.
bool both_threads_come(ThreadPool& pool, const std::function<void(int)>& body = [](int) {}) {
  std::atomic<int> here{0};
  std::atomic<bool> came{true};
  pool.parallel_for(2, 1, [&](int64_t, int64_t, int thread) {
    body(thread);
    ++here;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (here < 2) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) {
        came = false;
        return;
      }
    }
  });
  return came;
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  std::vector<int> out;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return out;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) out.push_back(cpu);
  }
  return out;
}

void run_on(pid_t thread, int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(processor), &set);
  ASSERT_EQ(sched_setaffinity(thread, sizeof(set), &set), 0);
}

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

// Holds each thread in its first range until all have begun.
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

// One thread waits until another has taken part of its share.
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

TEST(ThreadPool, NestedWorkRunsInlineOnTheSameThread) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(12, 1, [&](int64_t first, int64_t last, int outer) {
    const std::thread::id here = std::this_thread::get_id();
    pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end, int inner) {
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), here);
      total += static_cast<int>((last - first) * (end - begin));
    });
  });
  EXPECT_EQ(total.load(), 12000);
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
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // much longer than threads spin
    EXPECT_TRUE(both_threads_come(pool));
  }
}

// The pool's other thread must share its processor with a thread that never rests, and runs after
// it.
TEST(ThreadPool, AThreadThatGetsNoProcessorIsNotWaitedFor) {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "one processor";
  std::thread([&] {  // a thread of its own: its affinity ends with it
    ThreadPool pool(2);
    pid_t other = 0;
    ASSERT_TRUE(both_threads_come(pool, [&](int thread) {
      if (thread == 1) other = gettid();
    }));
    std::atomic<bool> begun{false}, done{false};
    std::thread busy([&] {
      run_on(0, processors[0]);
      for (begun = true; !done;) {
      }
    });
    run_on(0, processors[1]);
    run_on(other, processors[0]);
    const sched_param lowest{};
    ASSERT_EQ(sched_setscheduler(other, SCHED_IDLE, &lowest), 0);
    while (!begun) std::this_thread::yield();
    std::chrono::steady_clock::duration taken{};
    for (int round = 0; round < 50; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the other thread falls asleep
      const auto begin = std::chrono::steady_clock::now();
      pool.parallel_for(64, 4, [](int64_t, int64_t, int) {});
      taken += std::chrono::steady_clock::now() - begin;
    }
    EXPECT_LT(taken, std::chrono::seconds(1));
    done = true;
    busy.join();
  })
      .join();
}

TEST(ThreadPool, BadThreadCountsAreErrors) {
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(1025), Error);
}

}  // namespace
}  // namespace rbee::cpu
