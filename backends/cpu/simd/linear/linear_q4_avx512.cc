#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_avx512 = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_avx512 = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
