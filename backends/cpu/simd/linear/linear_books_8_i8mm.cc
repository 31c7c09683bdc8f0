#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_i8mm.h"
// The formats build on the vectors, the tiles on the products.
#include "backends/cpu/simd/linear/code_book_formats.h"
#include "backends/cpu/simd/linear/tiles_i8mm.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq1_s_i8mm = block_kernels<FormatIQ1_S>();
constinit const PanelKernels linear_iq1_m_i8mm = block_kernels<FormatIQ1_M>();
constinit const PanelKernels linear_iq2_xxs_i8mm = block_kernels<FormatIQ2_XXS>();
constinit const PanelKernels linear_iq2_xs_i8mm = block_kernels<FormatIQ2_XS>();
constinit const PanelKernels linear_iq2_s_i8mm = block_kernels<FormatIQ2_S>();

}  // namespace rbee::cpu
