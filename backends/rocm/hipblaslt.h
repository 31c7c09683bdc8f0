#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/gpu/lt_library.h"

namespace rbee::rocm {

// hipBLASLt (see gpu/ops/lt_products.h), opened at the first request; only with RBEE_HIPBLASLT=1,
// and only if a child process shows that it does not end the process (products_trial.h).
extern const gpu::LtVendor kHipblasLtVendor;
gpu::LtLibrary& hipblaslt_library();
extern const Impl<LinearArgs> linear_hipblaslt;
extern const Impl<FusedLinearArgs> fused_linear_hipblaslt;
extern const Impl<MatmulArgs> matmul_hipblaslt;

}  // namespace rbee::rocm
