#include "backends/cpu/simd/linear/dots_avxvnni.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
// The tiles build on the products.
#include "backends/cpu/simd/linear/tiles_avx2.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_avxvnni = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_avxvnni = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_avxvnni = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
