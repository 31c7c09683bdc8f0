// One row of x on packed weights of formats with blocks of 32, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE_TMA(q4_0, BlockQ4_0)
RB_MATVEC_ONE_TMA(q4_1, BlockQ4_1)
RB_MATVEC_ONE_TMA(q5_0, BlockQ5_0)
RB_MATVEC_ONE_TMA(q5_1, BlockQ5_1)
RB_MATVEC_ONE_TMA(q8_0, BlockQ8_0)
RB_MATVEC_ONE_TMA(iq4_nl, BlockIQ4_NL)
RB_MATVEC_ONE_TMA(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
