#pragma once
// A request for pictures while the engine has it.

#include <atomic>
#include <memory>
#include <optional>

#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/settings.h"
#include "rbee/engine/image/turns.h"

namespace rbee::engine {

// One request, from the queue to its last event.
struct DiffusionJob final : ImageTurn {
  ImageRequest request;
  // Absent while a request with pictures waits, also between its batches: decoded pictures are far
  // larger than their files.
  std::optional<ImageSettings> settings;
  std::shared_ptr<ImageSink> sink;
  std::atomic<bool> cancelled{false};
  std::atomic<Hurry> hurry{Hurry::none};

  // A request to hurry counts once if it is for some pictures, and from then on if it is for all.
  Hurry take_hurry() {
    Hurry pictures = Hurry::pictures;
    return hurry.compare_exchange_strong(pictures, Hurry::none) ? Hurry::pictures : hurry.load();
  }
};

}  // namespace rbee::engine
