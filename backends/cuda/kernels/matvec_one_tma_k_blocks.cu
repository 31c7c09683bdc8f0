// One row of x on packed weights of formats with blocks of 256, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma_integers.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE_TMA(q2_k, OneIntegers<BlockQ2_K>)
RB_MATVEC_ONE_TMA(q3_k, OneIntegers<BlockQ3_K>)
RB_MATVEC_ONE_TMA(q4_k, OneIntegers<BlockQ4_K>)
RB_MATVEC_ONE_TMA(q5_k, OneIntegers<BlockQ5_K>)
RB_MATVEC_ONE_TMA(q6_k, OneIntegers<BlockQ6_K>)
RB_MATVEC_ONE_TMA(q8_k, OneIntegers<BlockQ8_K>)
RB_MATVEC_ONE_TMA(iq4_xs, OneIntegers<BlockIQ4_XS>)

}  // namespace gpu
}  // namespace rbee
