// Choices of experts on packed weights of formats with blocks of 256, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EXPERT_FEW(q2_k, BlockQ2_K)
RB_EXPERT_FEW(q3_k, BlockQ3_K)
RB_EXPERT_FEW(q4_k, BlockQ4_K)
RB_EXPERT_FEW(q5_k, BlockQ5_K)
RB_EXPERT_FEW(q6_k, BlockQ6_K)
RB_EXPERT_FEW(q8_k, BlockQ8_K)
RB_EXPERT_FEW(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
