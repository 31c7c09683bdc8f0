#pragma once
// The specification of matrix products: any plain dtype, any strides, sums in double (or 64-bit
// integers).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<MatmulArgs> ref_matmul;

}  // namespace rbee::cpu
