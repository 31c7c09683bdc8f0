#pragma once
// Makes an engine from an image model's files and a backend.

#include <memory>

#include "backends/api/registry.h"
#include "rbee/engine/api/image.h"
#include "workers/sd/flags.h"

namespace rbee::workers {

// Throws for errors of the device or the files.
std::unique_ptr<engine::ImageEngine> load_image_engine(const BackendInfo& backend,
                                                       const SdFlags& flags,
                                                       server::LoadingState& loading);

}  // namespace rbee::workers
