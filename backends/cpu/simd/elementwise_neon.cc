#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/elementwise_loops.h"

namespace rbee::cpu {

const Impl<UnaryArgs> neon_unary{kIsaName, refuse_unary, run_unary};
const Impl<BinaryArgs> neon_binary{kIsaName, refuse_binary, run_binary};
const Impl<CastArgs> neon_cast{kIsaName, refuse_cast, run_cast};

}  // namespace rbee::cpu
