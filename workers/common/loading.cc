#include "workers/common/loading.h"

#include <chrono>

#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLineEvery{10};

server::LoadProgress fetched(const hub::DownloadProgress& progress) {
  server::LoadProgress out{
      .phase = server::LoadPhase::fetching, .done = progress.done, .total = progress.total};
  out.bytes_per_second = progress.bytes_per_second;
  if (progress.seconds_left >= 0) out.seconds_left = progress.seconds_left;
  return out;
}

}  // namespace

hub::ProgressCallback fetch_progress(server::LoadingState& state) {
  return [&state, logged = Clock::time_point()](const hub::DownloadProgress& progress) mutable {
    state.set(fetched(progress));
    const bool at_end = progress.done >= progress.total;
    if (!at_end && Clock::now() - logged < kLineEvery) return;
    logged = Clock::now();
    log(LogLevel::info, "fetching the model",
        {{"progress", hub::to_text(progress)},
         {"done", cat(progress.done)},
         {"total", cat(progress.total)}});
  };
}

std::function<void(int64_t, int64_t)> load_progress(server::LoadingState& state) {
  state.set({});
  return [&state, quarters = int64_t{0}](int64_t done, int64_t total) mutable {
    state.set({.phase = server::LoadPhase::loading, .done = done, .total = total});
    const int64_t now = total > 0 ? done * 4 / total : 4;
    if (now <= quarters) return;
    quarters = now;
    log(LogLevel::info, "loading", {{"percent", cat(now * 25)}});
  };
}

}  // namespace rbee::workers
