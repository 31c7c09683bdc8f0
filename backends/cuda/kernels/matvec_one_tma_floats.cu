// One row of x on plain weights of 16 bits and on packed e4m3 codes, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma_floats.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE_TMA(f16, OneFloats<f16>)
RB_MATVEC_ONE_TMA(bf16, OneFloats<bf16>)
RB_MATVEC_ONE_TMA(f8_g128, OneFloats<BlockF8_G128>)

}  // namespace gpu
}  // namespace rbee
