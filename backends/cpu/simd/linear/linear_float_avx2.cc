#include "backends/cpu/simd/linear/kernels_avx2.h"
#include "backends/cpu/simd/linear/vec_avx2.h"
// The float kernels build on the vectors.
#include "backends/cpu/simd/linear/e4m3_kernels.h"
#include "backends/cpu/simd/linear/float_kernels.h"

namespace rbee::cpu {

constinit const PanelKernels linear_f32_avx2 = kF32Kernels;
constinit const PanelKernels linear_f16_avx2 = kF16Kernels;
constinit const PanelKernels linear_bf16_avx2 = kBf16Kernels;
constinit const PanelKernels linear_f8_g128_avx2 = kE4m3Kernels;

}  // namespace rbee::cpu
