#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q8_0_avxvnni = block_kernels<FormatQ8_0>();
constinit const PanelKernels linear_q8_k_avxvnni = block_kernels<FormatQ8_K>();

}  // namespace rbee::cpu
