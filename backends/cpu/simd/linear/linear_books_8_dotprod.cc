#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_dotprod.h"
// The formats build on the vectors, the tiles on the products.
#include "backends/cpu/simd/linear/code_book_formats.h"
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq1_s_dotprod = block_kernels<FormatIQ1_S>();
constinit const PanelKernels linear_iq1_m_dotprod = block_kernels<FormatIQ1_M>();
constinit const PanelKernels linear_iq2_xxs_dotprod = block_kernels<FormatIQ2_XXS>();
constinit const PanelKernels linear_iq2_xs_dotprod = block_kernels<FormatIQ2_XS>();
constinit const PanelKernels linear_iq2_s_dotprod = block_kernels<FormatIQ2_S>();

}  // namespace rbee::cpu
