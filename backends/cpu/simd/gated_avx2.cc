#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx2.h"

#include "backends/cpu/simd/gated_loops.h"

namespace rbee::cpu {

const Impl<GatedArgs> avx2_gated{kIsaName, refuse_gated, run_gated};

}  // namespace rbee::cpu
