#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

#include "backends/cpu/simd/image_norm_loops.h"

namespace rbee::cpu {

const Impl<ImageGroupNormArgs> neon_image_group_norm{kIsaName, refuse_image_group_norm,
                                                     run_image_group_norm};

}  // namespace rbee::cpu
