#pragma once
// Kernels of each packed weight type with AVX-512.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_f32_avx512;
extern const PanelKernels linear_f16_avx512;
extern const PanelKernels linear_bf16_avx512;
extern const PanelKernels linear_q4_0_avx512;
extern const PanelKernels linear_q4_1_avx512;
extern const PanelKernels linear_q5_0_avx512;
extern const PanelKernels linear_q5_1_avx512;
extern const PanelKernels linear_q8_0_avx512;
extern const PanelKernels linear_q2_k_avx512;
extern const PanelKernels linear_q3_k_avx512;
extern const PanelKernels linear_q4_k_avx512;
extern const PanelKernels linear_q5_k_avx512;
extern const PanelKernels linear_q6_k_avx512;
extern const PanelKernels linear_q8_k_avx512;
extern const PanelKernels linear_iq4_nl_avx512;
extern const PanelKernels linear_iq4_xs_avx512;
extern const PanelKernels linear_mxfp4_avx512;
extern const PanelKernels linear_iq1_s_avx512;
extern const PanelKernels linear_iq1_m_avx512;
extern const PanelKernels linear_iq2_xxs_avx512;
extern const PanelKernels linear_iq2_xs_avx512;
extern const PanelKernels linear_iq2_s_avx512;
extern const PanelKernels linear_iq3_xxs_avx512;
extern const PanelKernels linear_iq3_s_avx512;
extern const PanelKernels linear_tq1_0_avx512;
extern const PanelKernels linear_tq2_0_avx512;
extern const PanelKernels linear_nvfp4_avx512;
extern const PanelKernels linear_f8_g128_avx512;

extern const PanelKernels linear_f8_g128_avx512bf16;

}  // namespace rbee::cpu
