#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/layer_norm_loops.h"

namespace rbee::cpu {

const Impl<LayerNormArgs> neon_layer_norm{kIsaName, refuse_layer_norm, run_layer_norm};

}  // namespace rbee::cpu
