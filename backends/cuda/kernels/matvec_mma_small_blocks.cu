// Few rows of x on packed weights of formats with blocks of 32, on tensor cores.
#include "backends/cuda/kernels/matvec_mma_packed.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MMA_PACKED(q4_0, BlockQ4_0)
RB_MATVEC_MMA_PACKED(q4_1, BlockQ4_1)
RB_MATVEC_MMA_PACKED(q5_0, BlockQ5_0)
RB_MATVEC_MMA_PACKED(q5_1, BlockQ5_1)
RB_MATVEC_MMA_PACKED(q8_0, BlockQ8_0)
RB_MATVEC_MMA_PACKED(iq4_nl, BlockIQ4_NL)
RB_MATVEC_MMA_PACKED(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
