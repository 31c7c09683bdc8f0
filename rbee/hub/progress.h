#pragma once
// How far a download is, for people and logs.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace rbee::hub {

struct DownloadProgress {
  int64_t done = 0;             // bytes, with those that were there before
  int64_t total = 0;            // bytes
  double bytes_per_second = 0;  // of the last seconds
  double seconds_left = -1;     // -1 = unknown
};
using ProgressCallback = std::function<void(const DownloadProgress&)>;

// "1.25 GB of 4.68 GB (26 %), 35.1 MB/s, 1 min 37 s left".
std::string to_text(const DownloadProgress& progress);

// Calls the callback a few times a second, and at the end. From any thread.
class ProgressMeter {
 public:
  ProgressMeter(int64_t total, ProgressCallback callback);

  // fetched: false for what was on the disk before, which says nothing of the speed. A negative
  // count: bytes that are fetched again.
  void add(int64_t bytes, bool fetched);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;  // guards what follows
  const ProgressCallback callback_;
  DownloadProgress progress_;
  int64_t fetched_ = 0;
  std::deque<std::pair<Clock::time_point, int64_t>> samples_;  // of fetched_, the last seconds
  Clock::time_point reported_;
};

}  // namespace rbee::hub
