#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/matmul_loops.h"

namespace rbee::cpu {

const Impl<MatmulArgs> avx512_matmul{kIsaName, refuse_matmul, run_matmul};

}  // namespace rbee::cpu
