#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_q4_k_avxvnni = block_kernels<FormatQ4_K>();
constinit const PanelKernels linear_q5_k_avxvnni = block_kernels<FormatQ5_K>();
constinit const PanelKernels linear_q6_k_avxvnni = block_kernels<FormatQ6_K>();

}  // namespace rbee::cpu
