#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/attention_loops.h"

namespace rbee::cpu {

const Impl<AttentionArgs> avx512_attention{kIsaName, refuse_attention, run_attention};

}  // namespace rbee::cpu
