// Mat-vec on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

RB_MATVEC(q2_k, BlockQ2_K)
RB_MATVEC(q3_k, BlockQ3_K)
RB_MATVEC(q4_k, BlockQ4_K)
RB_MATVEC(q5_k, BlockQ5_K)
RB_MATVEC(q6_k, BlockQ6_K)
RB_MATVEC(q8_k, BlockQ8_K)
RB_MATVEC(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
