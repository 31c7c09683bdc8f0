#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Any weight, plain or packed, any number of rows.
extern const Impl<LinearArgs> linear;

}  // namespace rbee::gpu
