// x in f16: see mma_convert.h.
#include "backends/cuda/kernels/mma_convert.h"

namespace rbee {
namespace gpu {

#define RB_CONVERT_BLOCK(weight, Block) RB_CONVERT(f16, f16, weight, PackedRun<Block>)
RB_EACH_BLOCK(RB_CONVERT_BLOCK)
RB_CONVERT(f16, f16, f8e4m3, PlainRun<f8e4m3>)
RB_CONVERT(f16, f16, bf16, PlainRun<bf16>)

}  // namespace gpu
}  // namespace rbee
