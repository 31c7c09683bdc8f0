#include "backends/cpu/simd/linear/dots_avx2.h"
#include "backends/cpu/simd/linear/kernels_avx2.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_avx2 = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_avx2 = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
