#include "backends/cpu/simd/linear/dots_neon.h"
#include "backends/cpu/simd/linear/kernels_neon.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_neon.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_neon = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_neon = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_neon = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
