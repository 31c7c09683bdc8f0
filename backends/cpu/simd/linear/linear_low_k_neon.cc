#include "backends/cpu/simd/linear/dots_neon.h"
#include "backends/cpu/simd/linear/kernels_neon.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q2_k_neon = block_kernels<FormatQ2_K>();
constinit const PanelKernels linear_q3_k_neon = block_kernels<FormatQ3_K>();

}  // namespace rbee::cpu
