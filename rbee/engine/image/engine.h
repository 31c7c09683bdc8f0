#pragma once
// The engine of an image model: clients take turns, each with its oldest request, which has a
// thread; one of these works at a time.

#include <chrono>
#include <memory>

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

struct ImageEngineOptions {
  // Requests queued beyond those that have begun; more are refused. Of clients that have less than
  // their share at most as many again are taken.
  int32_t max_waiting = 64;
  // So long a request goes on at least before another client's may.
  std::chrono::milliseconds slice{10};
  // One step at the model's own size before there are requests; on devices with kernels to load.
  bool warm_up = true;
};

// Takes the model over.
std::unique_ptr<ImageEngine> make_image_engine(ImageSource source,
                                               const ImageEngineOptions& options = {});

}  // namespace rbee::engine
