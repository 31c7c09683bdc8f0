// Choices of experts on weights of f16 and bf16, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EXPERT_FEW_PLAIN(f16)
RB_EXPERT_FEW_PLAIN(bf16)

}  // namespace gpu
}  // namespace rbee
