#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// The float kernels build on the vectors.
#include "backends/cpu/simd/linear/float_kernels.h"

namespace rbee::cpu {

constinit const PanelKernels linear_f32_avx512 = kF32Kernels;
constinit const PanelKernels linear_f16_avx512 = kF16Kernels;
constinit const PanelKernels linear_bf16_avx512 = kBf16Kernels;

}  // namespace rbee::cpu
