#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_avxvnni = block_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_avxvnni = block_kernels<FormatQ4_1>();

}  // namespace rbee::cpu
