#pragma once
// Kernels of each packed block type with AMX.

#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

extern const PanelKernels linear_q4_0_amx;
extern const PanelKernels linear_q4_1_amx;
extern const PanelKernels linear_q5_0_amx;
extern const PanelKernels linear_q5_1_amx;
extern const PanelKernels linear_q8_0_amx;
extern const PanelKernels linear_q2_k_amx;
extern const PanelKernels linear_q3_k_amx;
extern const PanelKernels linear_q4_k_amx;
extern const PanelKernels linear_q5_k_amx;
extern const PanelKernels linear_q6_k_amx;
extern const PanelKernels linear_q8_k_amx;
extern const PanelKernels linear_iq4_nl_amx;
extern const PanelKernels linear_iq4_xs_amx;
extern const PanelKernels linear_mxfp4_amx;
extern const PanelKernels linear_iq1_s_amx;
extern const PanelKernels linear_iq1_m_amx;
extern const PanelKernels linear_iq2_xxs_amx;
extern const PanelKernels linear_iq2_xs_amx;
extern const PanelKernels linear_iq2_s_amx;
extern const PanelKernels linear_iq3_xxs_amx;
extern const PanelKernels linear_iq3_s_amx;
extern const PanelKernels linear_tq1_0_amx;
extern const PanelKernels linear_tq2_0_amx;
extern const PanelKernels linear_nvfp4_amx;

}  // namespace rbee::cpu
