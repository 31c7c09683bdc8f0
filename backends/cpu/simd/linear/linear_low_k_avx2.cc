#include "backends/cpu/simd/linear/dots_avx2.h"
#include "backends/cpu/simd/linear/kernels_avx2.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q2_k_avx2 = block_kernels<FormatQ2_K>();
constinit const PanelKernels linear_q3_k_avx2 = block_kernels<FormatQ3_K>();

}  // namespace rbee::cpu
