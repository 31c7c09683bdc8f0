// Mat-vec of chosen experts on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/expert_matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EXPERT_MATVEC(q2_k, BlockQ2_K)
RB_EXPERT_MATVEC(q3_k, BlockQ3_K)
RB_EXPERT_MATVEC(q4_k, BlockQ4_K)
RB_EXPERT_MATVEC(q5_k, BlockQ5_K)
RB_EXPERT_MATVEC(q6_k, BlockQ6_K)
RB_EXPERT_MATVEC(q8_k, BlockQ8_K)
RB_EXPERT_MATVEC(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
