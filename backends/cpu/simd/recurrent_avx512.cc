#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/recurrent_loops.h"

namespace rbee::cpu {

const Impl<CausalConvArgs> avx512_causal_conv{kIsaName, refuse_causal_conv, run_causal_conv};
const Impl<DeltaRuleArgs> avx512_delta_rule{kIsaName, refuse_delta_rule, run_delta_rule};

}  // namespace rbee::cpu
