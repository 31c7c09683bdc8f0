// Many rows of x on packed weights of e4m3 codes, on Hopper.
#include "backends/cuda/kernels/gemm_packed.h"

namespace rbee {
namespace gpu {

RB_GEMM_PACKED(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
