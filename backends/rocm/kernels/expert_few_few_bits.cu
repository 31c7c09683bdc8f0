// Choices of experts on packed weights of formats of few bits, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_EXPERT_FEW)

}  // namespace gpu
}  // namespace rbee
