#pragma once
// Kernels of each packed weight type with AVX-VNNI; float weights have those of AVX2.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_q4_0_avxvnni;
extern const PanelKernels linear_q4_1_avxvnni;
extern const PanelKernels linear_q5_0_avxvnni;
extern const PanelKernels linear_q5_1_avxvnni;
extern const PanelKernels linear_q8_0_avxvnni;
extern const PanelKernels linear_q2_k_avxvnni;
extern const PanelKernels linear_q3_k_avxvnni;
extern const PanelKernels linear_q4_k_avxvnni;
extern const PanelKernels linear_q5_k_avxvnni;
extern const PanelKernels linear_q6_k_avxvnni;
extern const PanelKernels linear_q8_k_avxvnni;
extern const PanelKernels linear_iq4_nl_avxvnni;
extern const PanelKernels linear_iq4_xs_avxvnni;
extern const PanelKernels linear_mxfp4_avxvnni;
extern const PanelKernels linear_iq1_s_avxvnni;
extern const PanelKernels linear_iq1_m_avxvnni;
extern const PanelKernels linear_iq2_xxs_avxvnni;
extern const PanelKernels linear_iq2_xs_avxvnni;
extern const PanelKernels linear_iq2_s_avxvnni;
extern const PanelKernels linear_iq3_xxs_avxvnni;
extern const PanelKernels linear_iq3_s_avxvnni;
extern const PanelKernels linear_tq1_0_avxvnni;
extern const PanelKernels linear_tq2_0_avxvnni;
extern const PanelKernels linear_nvfp4_avxvnni;

}  // namespace rbee::cpu
