// Mat-vec of chosen experts on packed weights of formats with blocks of 32.
#include "backends/gpu/kernels/expert_matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EXPERT_MATVEC(q4_0, BlockQ4_0)
RB_EXPERT_MATVEC(q4_1, BlockQ4_1)
RB_EXPERT_MATVEC(q5_0, BlockQ5_0)
RB_EXPERT_MATVEC(q5_1, BlockQ5_1)
RB_EXPERT_MATVEC(q8_0, BlockQ8_0)
RB_EXPERT_MATVEC(iq4_nl, BlockIQ4_NL)
RB_EXPERT_MATVEC(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
