#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Any dtype, any strides.
extern const Impl<MatmulArgs> matmul;

}  // namespace rbee::gpu
