#include "backends/cpu/simd/linear/kernels_neon.h"
#include "backends/cpu/simd/linear/vec_neon.h"
// The float kernels build on the vectors.
#include "backends/cpu/simd/linear/e4m3_kernels.h"
#include "backends/cpu/simd/linear/float_kernels.h"

namespace rbee::cpu {

constinit const PanelKernels linear_f32_neon = kF32Kernels;
constinit const PanelKernels linear_f16_neon = kF16Kernels;
constinit const PanelKernels linear_bf16_neon = kBf16Kernels;
constinit const PanelKernels linear_f8_g128_neon = kE4m3Kernels;

}  // namespace rbee::cpu
