#include "rbee/hub/progress.h"

#include <optional>

#include "rbee/core/progress_text.h"

namespace rbee::hub {
namespace {

constexpr std::chrono::milliseconds kReportEvery{200};
constexpr std::chrono::seconds kWindow{8};  // of the speed

}  // namespace

std::string to_text(const DownloadProgress& progress) {
  const double left = progress.seconds_left;
  return progress_to_text(progress.done, progress.total, progress.bytes_per_second,
                          left >= 0 ? std::optional(left) : std::nullopt);
}

ProgressMeter::ProgressMeter(int64_t total, ProgressCallback callback)
    : callback_(std::move(callback)), progress_{.total = total} {}

void ProgressMeter::add(int64_t bytes, bool fetched) {
  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  const bool begun = !samples_.empty();
  if (!begun) samples_.emplace_back(now, 0);
  progress_.done += bytes;
  if (fetched && bytes > 0) fetched_ += bytes;
  const bool at_end = progress_.done >= progress_.total;
  if (at_end ? begun && bytes == 0 : now - reported_ < kReportEvery) return;
  reported_ = now;
  samples_.emplace_back(now, fetched_);
  while (samples_.size() > 2 && now - samples_.front().first > kWindow) samples_.pop_front();
  const double seconds = std::chrono::duration<double>(now - samples_.front().first).count();
  const auto fresh = static_cast<double>(fetched_ - samples_.front().second);
  progress_.bytes_per_second = seconds > 0 ? fresh / seconds : 0;
  progress_.seconds_left =
      progress_.bytes_per_second > 0
          ? static_cast<double>(progress_.total - progress_.done) / progress_.bytes_per_second
          : -1;
  if (callback_) callback_(progress_);
}

}  // namespace rbee::hub
