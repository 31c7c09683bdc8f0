// One row of x on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE(q2_k, BlockQ2_K)
RB_MATVEC_ONE(q3_k, BlockQ3_K)
RB_MATVEC_ONE(q4_k, BlockQ4_K)
RB_MATVEC_ONE(q5_k, BlockQ5_K)
RB_MATVEC_ONE(q6_k, BlockQ6_K)
RB_MATVEC_ONE(q8_k, BlockQ8_K)
RB_MATVEC_ONE(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
