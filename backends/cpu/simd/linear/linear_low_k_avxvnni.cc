#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q2_k_avxvnni = block_kernels<FormatQ2_K>();
constinit const PanelKernels linear_q3_k_avxvnni = block_kernels<FormatQ3_K>();

}  // namespace rbee::cpu
