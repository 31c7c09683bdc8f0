#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_dotprod.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_dotprod = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_dotprod = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
