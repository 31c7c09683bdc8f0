#pragma once
// The specification of linear layers: plain weights of any float or block type, sums in double.

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<LinearArgs> ref_linear;

}  // namespace rbee::cpu
