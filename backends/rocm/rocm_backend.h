#pragma once
// AMD GPUs as devices. A program that links this starts on any machine; it opens the HIP runtime
// when a device is requested.

#include "backends/api/registry.h"

namespace rbee::rocm {

const BackendInfo& rocm_backend();

}  // namespace rbee::rocm
