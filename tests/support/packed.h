#pragma once
// Packs the weights of cases into a device's own layout.

#include "tests/support/scene.h"

namespace rbee::harness {

// The weight, (out, in), in the layout of the device's linear kernels: itself if that is the plain
// one, else a copy that the scene keeps; work on the default stream writes it.
View pack(const View& weight, Scene& scene);

}  // namespace rbee::harness
