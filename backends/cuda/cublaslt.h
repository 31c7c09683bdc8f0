#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/gpu/lt_library.h"

namespace rbee::cuda {

// cuBLASLt (see gpu/ops/lt_products.h), opened at the first request.
extern const gpu::LtVendor kCublasLtVendor;
gpu::LtLibrary& cublaslt_library();
extern const Impl<LinearArgs> linear_cublaslt;
extern const Impl<FusedLinearArgs> fused_linear_cublaslt;
extern const Impl<MatmulArgs> matmul_cublaslt;

}  // namespace rbee::cuda
