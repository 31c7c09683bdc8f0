#pragma once
// The specification of random tensors: the formulas of backends/api/args_random.h, evaluated in
// double.

#include "backends/api/args_random.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<RandomArgs> ref_random;

}  // namespace rbee::cpu
