// bf16 weights and e4m3 codes with AVX-512 BF16; the other types use AVX-512's kernels.

#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/quantize_avx512.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// The products build on the vectors.
#include "backends/cpu/simd/linear/bf16_dot.h"
#include "backends/cpu/simd/linear/e4m3_dot.h"

namespace {

constexpr panel::PanelKernels kBf16DotKernels{.input = panel::InputForm::bf16,
                                              .row = &run_dot_row,
                                              .unpack = nullptr,
                                              .rows = &run_dot_rows,
                                              .pair = &run_dot_pair};

}  // namespace

namespace rbee::cpu {

constinit const PanelKernels linear_f8_g128_avx512bf16{.input = InputForm::bf16,
                                                       .row = &run_e4m3_row,
                                                       .unpack = &unpack_e4m3_pairs,
                                                       .rows = &run_e4m3_dot_rows,
                                                       .row_input = InputForm::f32};

namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_avx512;
  all[DType::f16] = &linear_f16_avx512;
  all[DType::bf16] = &kBf16DotKernels;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_avx512;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_avx512bf16;
  return all;
}

}  // namespace

constinit const LinearIsa linear_avx512bf16{.rows = &float_rows_avx512bf16,
                                            .row_unit = 12,
                                            .quantize = &quantize,
                                            .to_bf16 = &round_to_bf16,
                                            .split = nullptr,
                                            .kernels = kernels()};

}  // namespace rbee::cpu
