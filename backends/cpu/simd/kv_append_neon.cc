#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/kv_append_loops.h"

namespace rbee::cpu {

const Impl<KvAppendArgs> neon_kv_append{kIsaName, refuse_kv_append, run_kv_append};

}  // namespace rbee::cpu
