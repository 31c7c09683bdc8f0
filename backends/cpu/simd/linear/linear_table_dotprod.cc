#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_dotprod.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_dotprod = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_dotprod = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_dotprod = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
