#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/matmul_loops.h"

namespace rbee::cpu {

const Impl<MatmulArgs> neon_matmul{kIsaName, refuse_matmul, run_matmul};

}  // namespace rbee::cpu
