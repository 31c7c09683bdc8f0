#include "backends/cpu/simd/exp_sum.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/exp_sum_loops.h"

namespace rbee::cpu {

const ExpSum neon_exp_sum = exp_sum;

}  // namespace rbee::cpu
