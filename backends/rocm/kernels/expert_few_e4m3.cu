// Choices of experts on packed weights of e4m3 codes, on matrix units.
#include "backends/rocm/kernels/expert_few.h"

namespace rbee {
namespace gpu {

RB_EXPERT_FEW(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
