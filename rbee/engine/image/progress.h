#pragma once

#include <chrono>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

// Reports a job's progress to a sink.
class ImageProgressReporter {
 public:
  ImageProgressReporter(ImageSink& sink, int32_t total, int32_t images)
      : sink_(sink), total_(total), images_(images) {}

  // Does not report the same step twice.
  void step(int32_t done) {
    if (done == last_.step) return;
    const double now = seconds();
    last_ = {.step = done, .total = total_, .seconds = now};
    // Without the first step, which also loads kernels.
    if (done > 1 && now > first_) last_.steps_per_second = (done - 1) / (now - first_);
    if (done == 1) first_ = now;
    last_.images_per_second = last_.steps_per_second * images_ / total_;
    sink_.on_progress(last_);
  }

  // For a picture that is enlarged after the last step.
  void tiles(const TileProgress& tiles) {
    ImageProgress event = last_;
    event.total = total_;
    event.seconds = seconds();
    event.tiles = tiles;
    sink_.on_progress(event);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  ImageSink& sink_;
  int32_t total_;
  int32_t images_;
  ImageProgress last_;
  Clock::time_point start_ = Clock::now();
  double first_ = 0;
};

}  // namespace rbee::engine
