#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/elementwise_loops.h"

namespace rbee::cpu {

const Impl<UnaryArgs> avx512_unary{kIsaName, refuse_unary, run_unary};
const Impl<BinaryArgs> avx512_binary{kIsaName, refuse_binary, run_binary};
const Impl<CastArgs> avx512_cast{kIsaName, refuse_cast, run_cast};

}  // namespace rbee::cpu
