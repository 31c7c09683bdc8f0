// The list of AVX-VNNI's kernels: float weights and the conversion of x are as with AVX2.

#include "backends/cpu/simd/linear/kernels_avx2.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
#include "backends/cpu/simd/linear/quantize_avx2.h"

namespace rbee::cpu {
namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_avx2;
  all[DType::f16] = &linear_f16_avx2;
  all[DType::bf16] = &linear_bf16_avx2;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_avxvnni;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_avx2;
  return all;
}

}  // namespace

constinit const LinearIsa linear_avxvnni{.rows = &float_rows_avx2,
                                         .row_unit = 12,
                                         .quantize = &quantize,
                                         .to_bf16 = nullptr,
                                         .split = nullptr,
                                         .kernels = kernels()};

}  // namespace rbee::cpu
