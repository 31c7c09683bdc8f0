#pragma once
// Transforms of Winograd's convolution F(4 x 4, 3 x 3) (Lavin and Gray 2016): 4 x 4 outputs from
// 6 x 6 inputs with 36 multiplications for each pair of channels instead of 144. The points are 0,
// +-sqrt(1/2), +-sqrt(2) and infinity: a quarter of the usual points' error. In all buffers 16
// channels or outputs lie together.

#include <cstdint>

#include "rbee/core/dtype.h"

namespace rbee::cpu {

inline constexpr int kWinogradSide = 4;     // outputs of a tile along each axis
inline constexpr int kWinogradInput = 6;    // inputs of a tile along each axis
inline constexpr int kWinogradPlaces = 36;  // products of a tile
inline constexpr int kWinogradTaps = 9;
inline constexpr int kWinogradOutputs = 16;
inline constexpr int kWinogradLanes = 16;  // channels come in multiples of this

// Where the 16 outputs of a tile go, 16 elements each.
struct WinogradTarget {
  const float* add;                        // 16 floats that every output gets
  const void* residual[kWinogradOutputs];  // null: nothing to add
  void* y[kWinogradOutputs];               // null: outside the image
};

// Elements of images are f32, f16 or bf16. Steps from place to place should not be multiples of
// 4096 bytes, or 36 such lines share one set of the first-level cache.
struct WinogradKernels {
  // rows: the tile's 6 x 6 pixels, `channels` elements each, null outside the image;
  // out[place * step + channel]
  void (*input)(DType dtype, const void* const rows[kWinogradPlaces], int64_t channels, float* out,
                int64_t step);
  // taps: the filters' 3 x 3 weights, (count, 16) each; out[place * step + 16 * i + output]
  void (*weight)(const float* const taps[kWinogradTaps], int64_t count, float* out, int64_t step);
  // sums[place * step + output]: one tile's products
  void (*output)(DType dtype, const float* sums, int64_t step, const WinogradTarget& target);
};

extern const WinogradKernels winograd_avx2;
extern const WinogradKernels winograd_avx512;
extern const WinogradKernels winograd_neon;

}  // namespace rbee::cpu
