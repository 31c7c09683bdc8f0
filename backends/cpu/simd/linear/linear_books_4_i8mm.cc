#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_i8mm.h"
// The formats build on the vectors, the tiles on the products.
#include "backends/cpu/simd/linear/code_book_formats.h"
#include "backends/cpu/simd/linear/tiles_i8mm.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq3_xxs_i8mm = block_kernels<FormatIQ3_XXS>();
constinit const PanelKernels linear_iq3_s_i8mm = block_kernels<FormatIQ3_S>();
constinit const PanelKernels linear_tq1_0_i8mm = block_kernels<FormatTQ1_0>();
constinit const PanelKernels linear_tq2_0_i8mm = block_kernels<FormatTQ2_0>();
constinit const PanelKernels linear_nvfp4_i8mm = block_kernels<FormatNVFP4>();

}  // namespace rbee::cpu
