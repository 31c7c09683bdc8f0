// f16 and bf16: see gemm_tiles.h.
#include "backends/rocm/kernels/gemm_tiles.h"

namespace rbee {
namespace gpu {

RB_GEMM(f16, f16)
RB_GEMM(bf16, bf16)

}  // namespace gpu
}  // namespace rbee
