// One row of x on packed weights of formats with blocks of 256, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE_TMA(q2_k, BlockQ2_K)
RB_MATVEC_ONE_TMA(q3_k, BlockQ3_K)
RB_MATVEC_ONE_TMA(q4_k, BlockQ4_K)
RB_MATVEC_ONE_TMA(q5_k, BlockQ5_K)
RB_MATVEC_ONE_TMA(q6_k, BlockQ6_K)
RB_MATVEC_ONE_TMA(q8_k, BlockQ8_K)
RB_MATVEC_ONE_TMA(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
