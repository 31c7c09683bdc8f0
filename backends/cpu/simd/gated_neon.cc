#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/gated_loops.h"

namespace rbee::cpu {

const Impl<GatedArgs> neon_gated{kIsaName, refuse_gated, run_gated};

}  // namespace rbee::cpu
