#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// The float kernels build on the vectors.
#include "backends/cpu/simd/linear/e4m3_kernels.h"
#include "backends/cpu/simd/linear/float_kernels.h"

namespace rbee::cpu {

constinit const PanelKernels linear_f32_avx512 = kF32Kernels;
constinit const PanelKernels linear_f16_avx512 = kF16Kernels;
constinit const PanelKernels linear_bf16_avx512 = kBf16Kernels;
constinit const PanelKernels linear_f8_g128_avx512 = kE4m3Kernels;

}  // namespace rbee::cpu
