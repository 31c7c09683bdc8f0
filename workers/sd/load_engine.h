#pragma once
// From an image model's files and a backend to an engine.

#include <memory>

#include "backends/api/registry.h"
#include "rbee/engine/api/image.h"
#include "workers/sd/flags.h"

namespace rbee::workers {

// Throws what is wrong with the device or the files.
std::unique_ptr<engine::ImageEngine> load_image_engine(const BackendInfo& backend,
                                                       const SdFlags& flags);

}  // namespace rbee::workers
