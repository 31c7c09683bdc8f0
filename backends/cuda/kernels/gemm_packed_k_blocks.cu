// Many rows of x on packed weights of formats with blocks of 256, on Hopper.
#include "backends/cuda/kernels/gemm_packed.h"

namespace rbee {
namespace gpu {

RB_GEMM_PACKED(q2_k, BlockQ2_K)
RB_GEMM_PACKED(q3_k, BlockQ3_K)
RB_GEMM_PACKED(q4_k, BlockQ4_K)
RB_GEMM_PACKED(q5_k, BlockQ5_K)
RB_GEMM_PACKED(q6_k, BlockQ6_K)
RB_GEMM_PACKED(q8_k, BlockQ8_K)
RB_GEMM_PACKED(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
