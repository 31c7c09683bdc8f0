// Choices of experts on packed weights of formats with blocks of 256, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_EXPERT_FEW)

}  // namespace gpu
}  // namespace rbee
