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

constinit const LinearIsa linear_avx512bf16{.rows = &float_rows_avx512bf16,
                                            .row_unit = 12,
                                            .quantize = &quantize,
                                            .to_bf16 = &round_to_bf16,
                                            .split = nullptr,
                                            .f32 = &linear_f32_avx512,
                                            .f16 = &linear_f16_avx512,
                                            .bf16 = &kBf16DotKernels,
                                            .q4_0 = &linear_q4_0_avx512,
                                            .q4_1 = &linear_q4_1_avx512,
                                            .q5_0 = &linear_q5_0_avx512,
                                            .q5_1 = &linear_q5_1_avx512,
                                            .q8_0 = &linear_q8_0_avx512,
                                            .q2_k = &linear_q2_k_avx512,
                                            .q3_k = &linear_q3_k_avx512,
                                            .q4_k = &linear_q4_k_avx512,
                                            .q5_k = &linear_q5_k_avx512,
                                            .q6_k = &linear_q6_k_avx512,
                                            .q8_k = &linear_q8_k_avx512,
                                            .iq4_nl = &linear_iq4_nl_avx512,
                                            .iq4_xs = &linear_iq4_xs_avx512,
                                            .mxfp4 = &linear_mxfp4_avx512,
                                            .f8_g128 = &linear_f8_g128_avx512bf16,
                                            .iq1_s = &linear_iq1_s_avx512,
                                            .iq1_m = &linear_iq1_m_avx512,
                                            .iq2_xxs = &linear_iq2_xxs_avx512,
                                            .iq2_xs = &linear_iq2_xs_avx512,
                                            .iq2_s = &linear_iq2_s_avx512,
                                            .iq3_xxs = &linear_iq3_xxs_avx512,
                                            .iq3_s = &linear_iq3_s_avx512,
                                            .tq1_0 = &linear_tq1_0_avx512,
                                            .tq2_0 = &linear_tq2_0_avx512,
                                            .nvfp4 = &linear_nvfp4_avx512};

}  // namespace rbee::cpu
