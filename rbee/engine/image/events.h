#pragma once
// What a client is told of a job: its first event, and each picture as a file.

#include <cstdint>

#include "rbee/engine/image/job.h"

namespace rbee::engine {

// total: steps of all its pictures. The size is that after upscaling.
ImageStarted started_event(const DiffusionJob& job, const ImageModelInfo& model, int32_t total);

// Codes picture `index` into a file with its settings; if they are too long for the format, leaves
// them out and logs that. Takes long for large pictures, and needs no device.
ImageReady image_event(const DiffusionJob& job, const ImageModelInfo& model,
                       const io::Pixels& image, int32_t index);

}  // namespace rbee::engine
