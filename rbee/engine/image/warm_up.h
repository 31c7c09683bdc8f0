#pragma once
// The first picture of an engine, which nobody sees.

#include "rbee/engine/image/pipeline.h"

namespace rbee::engine {

// Loads kernels, lets libraries choose their algorithms, and touches memory. Throws if the device
// failed or cannot run the model. If the model cannot make a picture of its own size, it logs why,
// and the first request will say so again.
void warm_up(const ImageSource& source, ImagePipeline& pipeline);

}  // namespace rbee::engine
