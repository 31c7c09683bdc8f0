#include "backends/cpu/simd/linear/dots_neon.h"
#include "backends/cpu/simd/linear/kernels_neon.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_neon = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_neon = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
