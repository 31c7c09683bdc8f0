// The list of I8MM's kernels with those of bf16: other float weights and the conversion of x to 8
// bits are as with NEON.

#include "backends/cpu/simd/linear/kernels_i8mm.h"
#include "backends/cpu/simd/linear/kernels_neon.h"
#include "backends/cpu/simd/linear/quantize_neon.h"
#include "backends/cpu/simd/linear/vec_neon.h"
// It builds on the vectors.
#include "backends/cpu/simd/linear/bf16_i8mm.h"

namespace rbee::cpu {
namespace {

constexpr PanelKernels kBf16Products{
    .input = InputForm::bf16, .row = &run_bf16_row, .unpack = &join_fours, .rows = &run_bf16_rows};

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_neon;
  all[DType::f16] = &linear_f16_neon;
  all[DType::bf16] = &kBf16Products;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_i8mm;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_neon;
  return all;
}

}  // namespace

constinit const LinearIsa linear_i8mm{.rows = &float_rows_neon,
                                      .row_unit = 12,
                                      .quantize = &quantize,
                                      .to_bf16 = &round_to_bf16,
                                      .split = nullptr,
                                      .kernels = kernels()};

}  // namespace rbee::cpu
