#pragma once
// Apple's GPUs as devices. A program that links this starts on any machine; it opens Metal when a
// device is requested.

#include "backends/api/registry.h"

namespace rbee::metal {

const BackendInfo& metal_backend();

}  // namespace rbee::metal
