#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The formats build on the vectors, the tiles on the products.
#include "backends/cpu/simd/linear/code_book_formats.h"
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq3_xxs_avxvnni = block_kernels<FormatIQ3_XXS>();
constinit const PanelKernels linear_iq3_s_avxvnni = block_kernels<FormatIQ3_S>();
constinit const PanelKernels linear_tq1_0_avxvnni = block_kernels<FormatTQ1_0>();
constinit const PanelKernels linear_tq2_0_avxvnni = block_kernels<FormatTQ2_0>();
constinit const PanelKernels linear_nvfp4_avxvnni = block_kernels<FormatNVFP4>();

}  // namespace rbee::cpu
