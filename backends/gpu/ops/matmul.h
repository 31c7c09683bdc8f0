#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/shared/product_params.h"

namespace rbee::gpu {

// Any dtype, any strides.
extern const Impl<MatmulArgs> matmul;

// For kernels that take any strides.
shared::MatmulParams matmul_params(const MatmulArgs& args);
// How many matrices the batch has.
int64_t matrices_of(const MatmulArgs& args);

}  // namespace rbee::gpu
