#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q8_0_avx512 = block_kernels<FormatQ8_0>();
constinit const PanelKernels linear_q8_k_avx512 = block_kernels<FormatQ8_K>();

}  // namespace rbee::cpu
