#pragma once
// NVIDIA GPUs as devices. A program that links this starts on any machine; it opens the driver when
// a device is requested.

#include "backends/api/registry.h"

namespace rbee::cuda {

const BackendInfo& cuda_backend();

}  // namespace rbee::cuda
