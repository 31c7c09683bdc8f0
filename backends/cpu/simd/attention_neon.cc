#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/attention_loops.h"

namespace rbee::cpu {

const Impl<AttentionArgs> neon_attention{kIsaName, refuse_attention, run_attention};

}  // namespace rbee::cpu
