// The list of NEON's kernels, and the conversion of x.

#include "backends/cpu/simd/linear/kernels_neon.h"
#include "backends/cpu/simd/linear/quantize_neon.h"

namespace rbee::cpu {
namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_neon;
  all[DType::f16] = &linear_f16_neon;
  all[DType::bf16] = &linear_bf16_neon;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_neon;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_neon;
  return all;
}

}  // namespace

constinit const LinearIsa linear_neon{.rows = &float_rows_neon,
                                      .row_unit = 12,
                                      .quantize = &quantize,
                                      .to_bf16 = nullptr,
                                      .split = nullptr,
                                      .kernels = kernels()};

}  // namespace rbee::cpu
