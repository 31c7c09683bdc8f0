// The list of AVX-VNNI's kernels: float weights and the conversion of x are as with AVX2.

#include "backends/cpu/simd/linear/kernels_avx2.h"
#include "backends/cpu/simd/linear/kernels_avxvnni.h"
#include "backends/cpu/simd/linear/quantize_avx2.h"

namespace rbee::cpu {

constinit const LinearIsa linear_avxvnni{.rows = &float_rows_avx2,
                                         .row_unit = 12,
                                         .quantize = &quantize,
                                         .to_bf16 = nullptr,
                                         .split = nullptr,
                                         .f32 = &linear_f32_avx2,
                                         .f16 = &linear_f16_avx2,
                                         .bf16 = &linear_bf16_avx2,
                                         .q4_0 = &linear_q4_0_avxvnni,
                                         .q4_1 = &linear_q4_1_avxvnni,
                                         .q5_0 = &linear_q5_0_avxvnni,
                                         .q5_1 = &linear_q5_1_avxvnni,
                                         .q8_0 = &linear_q8_0_avxvnni,
                                         .q2_k = &linear_q2_k_avxvnni,
                                         .q3_k = &linear_q3_k_avxvnni,
                                         .q4_k = &linear_q4_k_avxvnni,
                                         .q5_k = &linear_q5_k_avxvnni,
                                         .q6_k = &linear_q6_k_avxvnni,
                                         .q8_k = &linear_q8_k_avxvnni,
                                         .iq4_nl = &linear_iq4_nl_avxvnni,
                                         .iq4_xs = &linear_iq4_xs_avxvnni,
                                         .mxfp4 = &linear_mxfp4_avxvnni,
                                         .f8_g128 = &linear_f8_g128_avx2,
                                         .iq1_s = &linear_iq1_s_avxvnni,
                                         .iq1_m = &linear_iq1_m_avxvnni,
                                         .iq2_xxs = &linear_iq2_xxs_avxvnni,
                                         .iq2_xs = &linear_iq2_xs_avxvnni,
                                         .iq2_s = &linear_iq2_s_avxvnni,
                                         .iq3_xxs = &linear_iq3_xxs_avxvnni,
                                         .iq3_s = &linear_iq3_s_avxvnni,
                                         .tq1_0 = &linear_tq1_0_avxvnni,
                                         .tq2_0 = &linear_tq2_0_avxvnni,
                                         .nvfp4 = &linear_nvfp4_avxvnni};

}  // namespace rbee::cpu
