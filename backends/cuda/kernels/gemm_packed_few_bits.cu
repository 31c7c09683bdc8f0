// Many rows of x on packed weights of formats of few bits, on Hopper.
#include "backends/cuda/kernels/gemm_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_GEMM_PACKED)

}  // namespace gpu
}  // namespace rbee
