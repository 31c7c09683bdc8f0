#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/conv_loops.h"

namespace rbee::cpu {

const Impl<Conv1dArgs> neon_conv1d{kIsaName, refuse_conv1d, run_conv1d};
const Impl<Conv2dArgs> neon_conv2d{kIsaName, refuse_conv2d, run_conv2d};

}  // namespace rbee::cpu
