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
namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &linear_f32_avx512;
  all[DType::f16] = &kF16TileKernels;
  all[DType::bf16] = &kBf16TileKernels;
#define RB_KERNELS(name, ...) all[DType::name] = &linear_##name##_amx;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &linear_f8_g128_avx512bf16;
  return all;
}

}  // namespace

constinit const LinearIsa linear_amx{.rows = &float_rows_avx512bf16,
                                     .row_unit = 48,
                                     // Processors with tiles have 2 MiB of that cache, and each
                                     // block unpacks all weights.
                                     .block_bytes = 768 * 1024,
                                     .quantize = &quantize,
                                     .to_bf16 = &round_to_bf16,
                                     .split = &split_inputs,
                                     .kernels = kernels()};

}  // namespace rbee::cpu
