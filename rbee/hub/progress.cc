#include "rbee/hub/progress.h"

#include <cmath>

#include "rbee/core/byte_text.h"
#include "rbee/core/cat.h"

namespace rbee::hub {
namespace {

constexpr std::chrono::milliseconds kReportEvery{200};
constexpr std::chrono::seconds kWindow{8};  // of the speed

std::string duration_to_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return cat(whole, " s");
  if (whole < 3600) return cat(whole / 60, " min ", whole % 60, " s");
  return cat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

}  // namespace

std::string to_text(const Progress& progress) {
  std::string out = cat(bytes_to_text(progress.done), " of ", bytes_to_text(progress.total));
  if (progress.total > 0) out += cat(" (", progress.done * 100 / progress.total, " %)");
  if (progress.bytes_per_second > 0) {
    out += cat(", ", bytes_to_text(static_cast<int64_t>(progress.bytes_per_second)), "/s");
  }
  if (progress.seconds_left >= 0)
    out += cat(", ", duration_to_text(progress.seconds_left), " left");
  return out;
}

ProgressMeter::ProgressMeter(int64_t total, ProgressCallback callback)
    : callback_(std::move(callback)), progress_{.total = total} {}

void ProgressMeter::add(int64_t bytes, bool fetched) {
  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (samples_.empty()) samples_.emplace_back(now, 0);
  progress_.done += bytes;
  if (fetched && bytes > 0) fetched_ += bytes;
  const bool at_end = progress_.done >= progress_.total;
  if (!at_end && now - reported_ < kReportEvery) return;
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
