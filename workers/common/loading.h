#pragma once
// How far the model's files and weights are: kept for health and heartbeats, and logged.

#include <cstdint>
#include <functional>

#include "rbee/hub/progress.h"
#include "server/worker/loading.h"

namespace rbee::workers {

// A line every ten seconds. The state must outlive both.
hub::ProgressCallback fetch_progress(server::LoadingState& state);
// A line for each quarter. done, total: bytes of weights.
std::function<void(int64_t done, int64_t total)> load_progress(server::LoadingState& state);

}  // namespace rbee::workers
