#pragma once
// What random tensors hold; formulas in backends/api/args_random.h, evaluated in double.

#include "backends/api/args_random.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<RandomArgs> ref_random;

}  // namespace rbee::cpu
