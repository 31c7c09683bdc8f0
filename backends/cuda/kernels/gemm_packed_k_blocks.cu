// Many rows of x on packed weights of formats with blocks of 256, on Hopper.
#include "backends/cuda/kernels/gemm_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_GEMM_PACKED)

}  // namespace gpu
}  // namespace rbee
