#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/rms_norm_loops.h"

namespace rbee::cpu {

const Impl<RmsNormArgs> neon_rms_norm{kIsaName, refuse_rms_norm, run_rms_norm};
const Impl<AddRmsNormArgs> neon_add_rms_norm{kIsaName, refuse_add_rms_norm, run_add_rms_norm};

}  // namespace rbee::cpu
