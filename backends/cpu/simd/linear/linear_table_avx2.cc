#include "backends/cpu/simd/linear/dots_avx2.h"
#include "backends/cpu/simd/linear/kernels_avx2.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_avx2 = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_avx2 = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_avx2 = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
