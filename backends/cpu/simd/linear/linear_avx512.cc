// The list of AVX-512's kernels, and the conversion of x.

#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/quantize_avx512.h"

namespace rbee::cpu {
namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_avx512;
  all[DType::f16] = &linear_f16_avx512;
  all[DType::bf16] = &linear_bf16_avx512;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_avx512;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_avx512;
  return all;
}

}  // namespace

constinit const LinearIsa linear_avx512{.rows = &float_rows_avx512,
                                        .row_unit = 12,
                                        .quantize = &quantize,
                                        .to_bf16 = nullptr,
                                        .split = nullptr,
                                        .kernels = kernels()};

}  // namespace rbee::cpu
