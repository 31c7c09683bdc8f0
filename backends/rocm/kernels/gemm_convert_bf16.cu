// x in bf16, weights of other types: see gemm_tiles.h.
#include "backends/rocm/kernels/gemm_tiles.h"

namespace rbee {
namespace gpu {

#define RB_GEMM_BLOCK(weight, Block) RB_GEMM(bf16_##weight, bf16, PackedRun<Block>)
RB_EACH_BLOCK(RB_GEMM_BLOCK)
RB_GEMM(bf16_f8e4m3, bf16, PlainRun<f8e4m3>)
RB_GEMM(bf16_f16, bf16, PlainRun<f16>)

}  // namespace gpu
}  // namespace rbee
