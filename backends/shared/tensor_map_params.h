#pragma once
// Parameters of kernels whose tiles the device's copy engine (TMA) fetches (Hopper and later).

#include "backends/shared/attention_params.h"
#include "backends/shared/image_params.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace shared {

// CUtensorMap: the engine's description of a tensor. The driver fills it in and requires this
// alignment.
struct alignas(64) TensorMap {
  u64 words[16];
};

// A convolution with such maps for pixels and filters. A cluster of two blocks computes a pair of
// tiles: two tiles of pixels that share their filters, or two of filters that share their pixels.
struct TensorConvParams {
  TensorMap pixels;  // im2col: (channels, width, height, images)
  // (channels, i, b, taps), output 4 i + b: the outs / 4 filters of one b lie together in a tile,
  // so a lane's sums are eight neighbours of a pixel.
  TensorMap filters;
  ImageConvParams conv;
  i32 height, width;   // pixels of an image that one class of outputs has (all, or a quarter)
  i32 rows;            // and of all images
  i32 down, across;    // pairs of tiles along pixels and outs
  i32 classes;         // 4 if x is enlarged: even and odd rows and columns; else 1
  i32 chunks;          // of 64 channels, of a tap
  i32 steps;           // chunks of all taps
  i32 steps_of_split;  // of one of `splits`
  i32 units;           // down * across * classes * splits
  i32 first_tap[2];    // row and column of the pixel that tap 0 of class 0 reads, from its output
  u32 shares_pixels;   // a pair is two tiles of filters
  // If tiles split the depth: each writes its partial sum to partials (units, 2, part_runs, 2
  // halves of a run, 64 rows, part_lanes, 4), as threads hold it, and a second kernel adds them.
  // Else null, with one split.
  float* partials;
  i32 splits;
  i32 part_runs, part_lanes;  // runs of a thread, lanes of four, with columns that exist
};

// y = x * weight^T + bias with such maps of its operands. A cluster of two blocks computes a pair
// of tiles: two tiles of rows that share their outputs, or two of outputs that share their rows.
struct TensorGemmParams {
  TensorMap x;       // (depth, rows, 1, 1)
  TensorMap weight;  // (depth, i, b, 1), output 4 i + b
  const void* bias;  // null: none; of y's type
  void* y;
  i64 y_row;           // elements between rows, a multiple of 8
  i32 y_type;          // 0: f32, 1: f16, 2: bf16
  i32 rows, outs;      // outs: a multiple of 8
  i32 down, across;    // pairs of tiles along rows and outs
  i32 steps;           // of 64 elements of 16 bits, or 128 of 8
  i32 splits;          // of the depth
  i32 steps_of_split;  // of 8 bits: a multiple of 4
  i32 units;           // down * across * splits
  u32 shares_x;        // a pair is two tiles of outputs
  float* partials;     // with splits > 1: as in FewRowsParams, with tiles of this width
  // e4m3: a scale for each 128 elements of a row.
  const float* x_scales;  // (steps, x_scale_row)
  i64 x_scale_row;
  const u8* weight_scales;  // of output 0, f32; each output's begin at a multiple of 16 bytes
  i64 weight_row_bytes;
};

// Linear layers for 9 to 64 rows of x in 16 bits (cuda/kernels/gemm_few_tma.cu): FewRowsParams, in
// tiles of kFewTensorOuts, with maps of its operands. One warp fetches.
enum { kFewTensorOuts = 128, kFewTensorThreads = 2 * kFewTensorOuts + 32 };
struct FewTensorParams {
  TensorMap x;                      // (in, rows, 1, 1)
  TensorMap weights[kMatvecParts];  // (in, outs, 1, 1) of each part
  FewRowsParams few;
};
// Bytes of a stage of its ring: 128 bytes of each row of a tile and of 8 * n rows of x.
RB_FN constexpr int few_tensor_stage(int n) {
  return (kFewTensorOuts + 8 * n) * 128;
}
// As many as fit if a multiprocessor holds two blocks.
RB_FN constexpr int few_tensor_stages(int n) {
  return n <= 2 ? 6 : n <= 4 ? 5 : 4;
}

// x rounded to e4m3 by groups of 128: d = max |x| / 448.
enum { kQuantizeE4m3Threads = 256, kE4m3Group = 128 };
struct QuantizeE4m3Params {
  const void* x;  // (rows, in), contiguous, 16-byte aligned
  u8* codes;      // (rows, in)
  float* scales;  // (in / 128, scale_row)
  i64 rows, in, scale_row;
};

// Dense attention with such maps of keys and values: (head_dim, keys, kv_heads, batch).
struct TensorAttentionParams {
  TensorMap keys, values;
  AttentionParams attention;
};

}  // namespace shared
}  // namespace rbee
