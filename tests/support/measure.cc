#include "tests/support/measure.h"

#include <algorithm>
#include <chrono>

namespace rbee::harness {
namespace {

double time_runs(CaseRun& run, int implementation, int count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) run.run(implementation);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

double time_one_run(CaseRun& run, int implementation, double seconds) {
  constexpr int kBatches = 5;
  run.run(implementation);
  const double once = std::max(time_runs(run, implementation, 1), 1e-9);
  const int count = std::max(1, static_cast<int>(seconds / kBatches / once));
  double best = once;
  for (int batch = 0; batch < kBatches; ++batch) {
    best = std::min(best, time_runs(run, implementation, count) / count);
  }
  return best;
}

}  // namespace rbee::harness
