// x in f16, weights of other types: see gemm_tiles.h.
#include "backends/rocm/kernels/gemm_tiles.h"

namespace rbee {
namespace gpu {

#define RB_GEMM_BLOCK(weight, Block) RB_GEMM(f16_##weight, f16, PackedRun<Block>)
RB_EACH_BLOCK(RB_GEMM_BLOCK)
RB_GEMM(f16_f8e4m3, f16, PlainRun<f8e4m3>)
RB_GEMM(f16_bf16, f16, PlainRun<bf16>)

}  // namespace gpu
}  // namespace rbee
