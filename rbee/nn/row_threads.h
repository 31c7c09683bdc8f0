#pragma once
// Uses all processors of the process to work on the rows of a matrix during load.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rbee::nn {

// Calls work(first, count, room) for parts of `total` rows, at most `at_once` each, in any order
// and several at a time. Each thread has its own `Room`. If calls fail, throws the first error at
// the end.
template <typename Room, typename Work>
void for_rows(int64_t total, int64_t at_once, const Work& work) {
  std::atomic<int64_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto loop = [&] {
    try {
      Room room;
      for (int64_t first = next.fetch_add(at_once); first < total;
           first = next.fetch_add(at_once)) {
        work(first, std::min(at_once, total - first), room);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  const int64_t parts = (total + at_once - 1) / at_once;
  const int64_t threads = std::min<int64_t>(parts, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(loop);
    loop();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace rbee::nn
