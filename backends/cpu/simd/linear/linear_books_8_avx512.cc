#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"
// The formats build on the vectors.
#include "backends/cpu/simd/linear/code_book_formats.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq1_s_avx512 = block_kernels<FormatIQ1_S>();
constinit const PanelKernels linear_iq1_m_avx512 = block_kernels<FormatIQ1_M>();
constinit const PanelKernels linear_iq2_xxs_avx512 = block_kernels<FormatIQ2_XXS>();
constinit const PanelKernels linear_iq2_xs_avx512 = block_kernels<FormatIQ2_XS>();
constinit const PanelKernels linear_iq2_s_avx512 = block_kernels<FormatIQ2_S>();

}  // namespace rbee::cpu
