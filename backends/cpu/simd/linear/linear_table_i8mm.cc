#include "backends/cpu/simd/linear/dots_dotprod.h"
#include "backends/cpu/simd/linear/kernels_i8mm.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_i8mm.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_i8mm = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_i8mm = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_i8mm = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
