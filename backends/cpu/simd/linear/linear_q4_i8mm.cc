#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_i8mm.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_i8mm.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_i8mm = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_i8mm = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
