#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q5_0_avxvnni = block_kernels<FormatQ5_0>();
constinit const PanelKernels linear_q5_1_avxvnni = block_kernels<FormatQ5_1>();

}  // namespace rbee::cpu
