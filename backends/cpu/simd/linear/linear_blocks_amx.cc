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

#define RB_KERNELS(name, Name, ...) \
  constinit const PanelKernels linear_##name##_amx = tile_kernels<Format##Name>();
RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS

}  // namespace rbee::cpu
