// What portable programs call where glibc lacks it (packaging/portable/old_glibc.c), as if this
// system's were old.

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <set>

using std::chrono::steady_clock;
using namespace std::chrono_literals;

extern "C" {
uint32_t old_arc4random();
int old_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* until);
int old_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until);
// In place of dlvsym.
void* find_nothing(void* /*library*/, const char* /*name*/, const char* /*version*/) {
  return nullptr;
}
}

namespace {

timespec in_time(clockid_t clock, std::chrono::nanoseconds time) {
  timespec now{};
  clock_gettime(clock, &now);
  const auto sum = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) + time;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(sum);
  return {.tv_sec = seconds.count(), .tv_nsec = (sum - seconds).count()};
}

TEST(OldGlibc, AWaitByTheMonotonicClockEndsInTime) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  // Several: nanoseconds of two clocks add up to more and to less than a second.
  for (int i = 0; i < 8; ++i) {
    const auto begin = steady_clock::now();
    const timespec until = in_time(CLOCK_MONOTONIC, 150ms);
    pthread_mutex_lock(&mutex);
    EXPECT_EQ(old_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    const auto waited = steady_clock::now() - begin;
    EXPECT_GT(waited, 140ms);
    EXPECT_LT(waited, 20s);
  }
  const timespec past = in_time(CLOCK_MONOTONIC, -150ms);
  pthread_mutex_lock(&mutex);
  EXPECT_EQ(old_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
}

TEST(OldGlibc, ALockByTheMonotonicClockEndsInTime) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const timespec later = in_time(CLOCK_MONOTONIC, 1h);
  ASSERT_EQ(old_clocklock(&mutex, CLOCK_MONOTONIC, &later), 0);
  const auto begin = steady_clock::now();
  const timespec until = in_time(CLOCK_MONOTONIC, 150ms);
  EXPECT_EQ(old_clocklock(&mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  const auto waited = steady_clock::now() - begin;
  EXPECT_GT(waited, 140ms);
  EXPECT_LT(waited, 20s);
  const timespec past = in_time(CLOCK_MONOTONIC, -150ms);
  EXPECT_EQ(old_clocklock(&mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
}

TEST(OldGlibc, RandomNumbersDiffer) {
  std::set<uint32_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(old_arc4random());
  EXPECT_GT(seen.size(), 95U);
}

}  // namespace
