// Choices of experts on packed weights of formats with blocks of 32, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EXPERT_FEW(q4_0, BlockQ4_0)
RB_EXPERT_FEW(q4_1, BlockQ4_1)
RB_EXPERT_FEW(q5_0, BlockQ5_0)
RB_EXPERT_FEW(q5_1, BlockQ5_1)
RB_EXPERT_FEW(q8_0, BlockQ8_0)
RB_EXPERT_FEW(iq4_nl, BlockIQ4_NL)
RB_EXPERT_FEW(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
