// Weights with AMX: x and the weights meet as bf16, block types unpacked to it, f16 as exact sums
// of it. f32 and e4m3 codes use AVX-512's kernels. Why not tiles of bytes:
// docs/decisions/0026-amx.md.

#include "backends/cpu/simd/linear/kernels_amx.h"
#include "backends/cpu/simd/linear/kernels_avx512.h"
#include "backends/cpu/simd/linear/quantize_avx512.h"
#include "backends/cpu/simd/linear/vec_avx512.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/bf16_dot.h"
#include "backends/cpu/simd/linear/tiles_amx.h"
// And these on the tiles.
#include "backends/cpu/simd/linear/split_amx.h"

namespace {

constexpr panel::PanelKernels kBf16TileKernels{.input = panel::InputForm::bf16,
                                               .row = &run_dot_row,
                                               .unpack = nullptr,
                                               .rows = &run_bf16_rows,
                                               .pair = &run_bf16_pair};
constexpr panel::PanelKernels kF16TileKernels{.input = panel::InputForm::split,
                                              .row = nullptr,
                                              .unpack = &unpack_split_f16,
                                              .rows = &run_split_rows};

}  // namespace

namespace rbee::cpu {

constinit const LinearIsa linear_amx{.rows = &float_rows_avx512bf16,
                                     .row_unit = 48,
                                     // Processors with tiles have 2 MiB of that cache, and each
                                     // block unpacks all weights.
                                     .block_bytes = 768 * 1024,
                                     .quantize = &quantize,
                                     .to_bf16 = &round_to_bf16,
                                     .split = &split_inputs,
                                     .f32 = &linear_f32_avx512,
                                     .f16 = &kF16TileKernels,
                                     .bf16 = &kBf16TileKernels,
                                     .q4_0 = &linear_q4_0_amx,
                                     .q4_1 = &linear_q4_1_amx,
                                     .q5_0 = &linear_q5_0_amx,
                                     .q5_1 = &linear_q5_1_amx,
                                     .q8_0 = &linear_q8_0_amx,
                                     .q2_k = &linear_q2_k_amx,
                                     .q3_k = &linear_q3_k_amx,
                                     .q4_k = &linear_q4_k_amx,
                                     .q5_k = &linear_q5_k_amx,
                                     .q6_k = &linear_q6_k_amx,
                                     .q8_k = &linear_q8_k_amx,
                                     .iq4_nl = &linear_iq4_nl_amx,
                                     .iq4_xs = &linear_iq4_xs_amx,
                                     .mxfp4 = &linear_mxfp4_amx,
                                     .f8_g128 = &linear_f8_g128_avx512bf16,
                                     .iq1_s = &linear_iq1_s_amx,
                                     .iq1_m = &linear_iq1_m_amx,
                                     .iq2_xxs = &linear_iq2_xxs_amx,
                                     .iq2_xs = &linear_iq2_xs_amx,
                                     .iq2_s = &linear_iq2_s_amx,
                                     .iq3_xxs = &linear_iq3_xxs_amx,
                                     .iq3_s = &linear_iq3_s_amx,
                                     .tq1_0 = &linear_tq1_0_amx,
                                     .tq2_0 = &linear_tq2_0_amx,
                                     .nvfp4 = &linear_nvfp4_amx};

}  // namespace rbee::cpu
