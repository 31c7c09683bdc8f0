#pragma once
// Weights of cases in a device's own layout.

#include "tests/support/scene.h"

namespace rbee::harness {

// The weight, (out, in), in the layout that the device's linear kernels want: itself where that is
// the plain one, else a copy that the scene holds, written by work queued on the default stream.
View pack(const View& weight, Scene& scene);

}  // namespace rbee::harness
