#include "backends/cpu/simd/linear/dots_neon.h"
#include "backends/cpu/simd/linear/kernels_neon.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q5_0_neon = block_kernels<FormatQ5_0>();
constinit const PanelKernels linear_q5_1_neon = block_kernels<FormatQ5_1>();

}  // namespace rbee::cpu
