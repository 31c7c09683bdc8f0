#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/paged_attention_loops.h"

namespace rbee::cpu {

const Impl<PagedAttentionArgs> neon_paged_attention{kIsaName, refuse_paged_attention,
                                                    run_paged_attention};

}  // namespace rbee::cpu
