#include "backends/cpu/simd/linear/kernels_amx.h"
#include "backends/cpu/simd/linear/tiles_avx512.h"
// These build on the formats.
#include "backends/cpu/simd/linear/bf16_dot.h"
#include "backends/cpu/simd/linear/code_book_formats.h"
#include "backends/cpu/simd/linear/tiles_amx.h"
#include "backends/cpu/simd/linear/unpack_bf16_amx.h"

namespace {

// What `unpack` left.
panel::PanelProduct unpacked(const panel::PanelProduct& p) {
  panel::PanelProduct plain = p;
  plain.packed = reinterpret_cast<const std::byte*>(p.panel.bf16);
  return plain;
}
void run_unpacked_rows(const panel::PanelProduct& p) {
  run_bf16_rows(unpacked(p));
}
void run_unpacked_pair(const panel::PanelProduct& a, const panel::PanelProduct& b) {
  run_bf16_pair(unpacked(a), unpacked(b));
}

// Bytes are widened without sign.
template <typename F>
constexpr panel::PanelKernels tile_kernels() {
  return {.input = panel::InputForm::bf16,
          .row = nullptr,
          .unpack = &unpack_bf16<typename AsUnsigned<F>::Type>,
          .rows = &run_unpacked_rows,
          .pair = &run_unpacked_pair};
}

}  // namespace

namespace rbee::cpu {

constinit const PanelKernels linear_q4_0_amx = tile_kernels<FormatQ4_0>();
constinit const PanelKernels linear_q4_1_amx = tile_kernels<FormatQ4_1>();
constinit const PanelKernels linear_q5_0_amx = tile_kernels<FormatQ5_0>();
constinit const PanelKernels linear_q5_1_amx = tile_kernels<FormatQ5_1>();
constinit const PanelKernels linear_q8_0_amx = tile_kernels<FormatQ8_0>();
constinit const PanelKernels linear_q2_k_amx = tile_kernels<FormatQ2_K>();
constinit const PanelKernels linear_q3_k_amx = tile_kernels<FormatQ3_K>();
constinit const PanelKernels linear_q4_k_amx = tile_kernels<FormatQ4_K>();
constinit const PanelKernels linear_q5_k_amx = tile_kernels<FormatQ5_K>();
constinit const PanelKernels linear_q6_k_amx = tile_kernels<FormatQ6_K>();
constinit const PanelKernels linear_q8_k_amx = tile_kernels<FormatQ8_K>();
constinit const PanelKernels linear_iq4_nl_amx = tile_kernels<FormatIQ4_NL>();
constinit const PanelKernels linear_iq4_xs_amx = tile_kernels<FormatIQ4_XS>();
constinit const PanelKernels linear_mxfp4_amx = tile_kernels<FormatMXFP4>();
constinit const PanelKernels linear_iq1_s_amx = tile_kernels<FormatIQ1_S>();
constinit const PanelKernels linear_iq1_m_amx = tile_kernels<FormatIQ1_M>();
constinit const PanelKernels linear_iq2_xxs_amx = tile_kernels<FormatIQ2_XXS>();
constinit const PanelKernels linear_iq2_xs_amx = tile_kernels<FormatIQ2_XS>();
constinit const PanelKernels linear_iq2_s_amx = tile_kernels<FormatIQ2_S>();
constinit const PanelKernels linear_iq3_xxs_amx = tile_kernels<FormatIQ3_XXS>();
constinit const PanelKernels linear_iq3_s_amx = tile_kernels<FormatIQ3_S>();
constinit const PanelKernels linear_tq1_0_amx = tile_kernels<FormatTQ1_0>();
constinit const PanelKernels linear_tq2_0_amx = tile_kernels<FormatTQ2_0>();
constinit const PanelKernels linear_nvfp4_amx = tile_kernels<FormatNVFP4>();

}  // namespace rbee::cpu
