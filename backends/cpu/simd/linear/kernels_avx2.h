#pragma once
// Kernels of each packed weight type with AVX2.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_f32_avx2;
extern const PanelKernels linear_f16_avx2;
extern const PanelKernels linear_bf16_avx2;
extern const PanelKernels linear_q4_0_avx2;
extern const PanelKernels linear_q4_1_avx2;
extern const PanelKernels linear_q5_0_avx2;
extern const PanelKernels linear_q5_1_avx2;
extern const PanelKernels linear_q8_0_avx2;
extern const PanelKernels linear_q2_k_avx2;
extern const PanelKernels linear_q3_k_avx2;
extern const PanelKernels linear_q4_k_avx2;
extern const PanelKernels linear_q5_k_avx2;
extern const PanelKernels linear_q6_k_avx2;
extern const PanelKernels linear_q8_k_avx2;
extern const PanelKernels linear_iq4_nl_avx2;
extern const PanelKernels linear_iq4_xs_avx2;
extern const PanelKernels linear_mxfp4_avx2;
extern const PanelKernels linear_iq1_s_avx2;
extern const PanelKernels linear_iq1_m_avx2;
extern const PanelKernels linear_iq2_xxs_avx2;
extern const PanelKernels linear_iq2_xs_avx2;
extern const PanelKernels linear_iq2_s_avx2;
extern const PanelKernels linear_iq3_xxs_avx2;
extern const PanelKernels linear_iq3_s_avx2;
extern const PanelKernels linear_tq1_0_avx2;
extern const PanelKernels linear_tq2_0_avx2;
extern const PanelKernels linear_nvfp4_avx2;
extern const PanelKernels linear_f8_g128_avx2;

}  // namespace rbee::cpu
