// One row of x on packed weights of formats with blocks of 32, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma_integers.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE_TMA(q4_0, OneIntegers<BlockQ4_0>)
RB_MATVEC_ONE_TMA(q4_1, OneIntegers<BlockQ4_1>)
RB_MATVEC_ONE_TMA(q5_0, OneIntegers<BlockQ5_0>)
RB_MATVEC_ONE_TMA(q5_1, OneIntegers<BlockQ5_1>)
RB_MATVEC_ONE_TMA(q8_0, OneIntegers<BlockQ8_0>)
RB_MATVEC_ONE_TMA(iq4_nl, OneIntegers<BlockIQ4_NL>)
RB_MATVEC_ONE_TMA(mxfp4, OneIntegers<BlockMXFP4>)

}  // namespace gpu
}  // namespace rbee
