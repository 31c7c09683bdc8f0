#pragma once
// The specification of dense attention: float dtypes, any strides, everything but the operands in
// double.

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<AttentionArgs> ref_attention;

}  // namespace rbee::cpu
