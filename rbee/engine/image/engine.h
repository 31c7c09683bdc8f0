#pragma once
// The engine of an image model. Clients take turns, each with its oldest request. Each request that
// has begun has a thread, but only one of these works at a time.

#include <chrono>
#include <memory>

#include "rbee/engine/api/image.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

struct ImageEngineOptions {
  // Requests that may wait beside those that have begun. When the places are full, only clients
  // below their fair share may still queue, up to twice this number.
  int32_t max_waiting = 64;
  // The shortest turn of a request before another client's.
  std::chrono::milliseconds slice{10};
  // Run one step at the model's own size at the start, on devices with kernels to load.
  bool warm_up = true;
};

// Takes the model over.
std::unique_ptr<ImageEngine> make_image_engine(ImageSource source,
                                               const ImageEngineOptions& options = {});

}  // namespace rbee::engine
