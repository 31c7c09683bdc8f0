#pragma once
// The engine of an image model: one thread, a queue in order of arrival, one request after another.

#include <memory>

#include "rbee/engine/image_api.h"
#include "rbee/engine/image_source.h"

namespace rbee::engine {

struct ImageEngineOptions {
  int32_t max_waiting = 64;  // requests queued beyond the running one; more are refused
  // One step at the model's own size before there are requests; on devices with kernels to load.
  bool warm_up = true;
};

// Takes the model over and starts the engine's thread.
std::unique_ptr<ImageEngine> make_image_engine(ImageSource source,
                                               const ImageEngineOptions& options = {});

}  // namespace rbee::engine
