#pragma once
// NVIDIA GPUs as devices. A program that links this starts on any machine; the driver is opened
// when a device is asked for.

#include "backends/api/registry.h"

namespace rbee::cuda {

const BackendInfo& cuda_backend();

}  // namespace rbee::cuda
