#pragma once
// Bytes that a test program holds, as counted by the sanitizer's allocator. Without a sanitizer the
// tests are skipped.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizers' names
extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void*, size_t), void (*freed)(const volatile void*));
extern "C" [[gnu::weak]] size_t __sanitizer_get_allocated_size(const volatile void*);
// NOLINTEND(bugprone-reserved-identifier)

namespace rbee::testing {

class HeldBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__sanitizer_install_malloc_and_free_hooks == nullptr) GTEST_SKIP() << "nothing counts";
    static const int installed =
        __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
    ASSERT_NE(installed, 0);
  }

  // The peak of bytes that `work` holds above those held before it, divided by `units`.
  static double bytes_per(double units, const std::function<void()>& work) {
    const int64_t before = held_;
    most_held_ = before;
    work();
    return static_cast<double>(most_held_ - before) / units;
  }
  // Waits until at most `bytes` above `before` are held; false after a minute.
  static bool wait_released(int64_t before, int64_t bytes) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (held_ > before + bytes) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  static int64_t held() { return held_; }

 private:
  static void on_allocation(const volatile void*, size_t bytes) {
    const int64_t now = held_ += static_cast<int64_t>(bytes);
    int64_t before = most_held_;
    while (before < now && !most_held_.compare_exchange_weak(before, now)) {
    }
  }
  static void on_release(const volatile void* block) {
    if (block != nullptr) held_ -= static_cast<int64_t>(__sanitizer_get_allocated_size(block));
  }

  static inline std::atomic<int64_t> held_{0}, most_held_{0};
};

}  // namespace rbee::testing
