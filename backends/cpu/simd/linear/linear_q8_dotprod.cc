#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_dotprod.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q8_0_dotprod = block_kernels<FormatQ8_0>();
constinit const PanelKernels linear_q8_k_dotprod = block_kernels<FormatQ8_K>();

}  // namespace rbee::cpu
