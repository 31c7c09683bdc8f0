#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"

namespace rbee::cpu {

constinit const PanelKernels linear_iq4_nl_avx512 = block_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_avx512 = block_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_avx512 = block_kernels<FormatMXFP4>();

}  // namespace rbee::cpu
