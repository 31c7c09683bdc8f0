#pragma once
// AMD GPUs as devices. A program that links this starts on any machine; the HIP runtime is opened
// when a device is asked for.

#include "backends/api/registry.h"

namespace rbee::rocm {

const BackendInfo& rocm_backend();

}  // namespace rbee::rocm
