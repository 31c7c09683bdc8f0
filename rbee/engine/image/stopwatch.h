#pragma once
// Measures the time of a picture's parts.

#include <chrono>

#include "rbee/engine/image/pipeline.h"

namespace rbee::engine {

// Adds the time until it is destroyed, without pauses.
class Stopwatch {
 public:
  Stopwatch(PipelineTimes& times, double PipelineTimes::* part)
      : times_(times), part_(part), paused_(times.paused_ms) {}
  ~Stopwatch() {
    const std::chrono::duration<double, std::milli> spent = Clock::now() - start_;
    times_.*part_ += spent.count() - (times_.paused_ms - paused_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  PipelineTimes& times_;
  double PipelineTimes::* const part_;
  const double paused_;  // before
  Clock::time_point start_ = Clock::now();
};

}  // namespace rbee::engine
