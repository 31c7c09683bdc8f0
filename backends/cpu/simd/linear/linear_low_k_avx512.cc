#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q2_k_avx512 = block_kernels<FormatQ2_K>();
constinit const PanelKernels linear_q3_k_avx512 = block_kernels<FormatQ3_K>();

}  // namespace rbee::cpu
