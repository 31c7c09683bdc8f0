#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/rope_loops.h"

namespace rbee::cpu {

const Impl<RopeArgs> neon_rope{kIsaName, refuse_rope, run_rope};

}  // namespace rbee::cpu
