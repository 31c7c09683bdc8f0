#pragma once
// Parameters of kernels that let the device's copy engine fetch tiles (Hopper and later).

#include "backends/shared/attention_params.h"
#include "backends/shared/image_params.h"

namespace rbee {
namespace shared {

// CUtensorMap: what the engine knows of a tensor. The driver fills it in, and asks for this
// alignment.
struct alignas(64) TensorMap {
  u64 words[16];
};

// A convolution whose pixels and filters come by such maps. A cluster of two blocks does a pair of
// tiles: two tiles of pixels that share their filters, or two of filters that share their pixels.
struct TensorConvParams {
  TensorMap pixels;  // im2col: (channels, width, height, images)
  // (channels, i, b, taps), output 4 i + b: the outs / 4 filters of one b lie together in a tile,
  // so that a lane's sums are eight neighbours of a pixel.
  TensorMap filters;
  ImageConvParams conv;
  i32 height, width;   // pixels of an image that one class of outputs has (all, or a quarter)
  i32 rows;            // and of all images
  i32 down, across;    // pairs of tiles along pixels and outs
  i32 classes;         // 4 where x is seen enlarged: even and odd rows and columns; else 1
  i32 chunks;          // of 64 channels, of a tap
  i32 steps;           // chunks of all taps
  i32 steps_of_split;  // of one of `splits`
  i32 units;           // down * across * classes * splits
  i32 first_tap[2];    // row and column of the pixel that tap 0 of class 0 reads, from its output
  u32 shares_pixels;   // a pair is two tiles of filters
  // Where tiles share the depth: each sums its part into partials (units, 2, part_runs, 2 halves of
  // a run, 64 rows, part_lanes, 4), as threads hold it, and a second kernel joins them. Else null,
  // one split.
  float* partials;
  i32 splits;
  i32 part_runs, part_lanes;  // runs of a thread, lanes of four, with columns that exist
};

// Dense attention whose keys and values come by such maps: (head_dim, keys, kv_heads, batch).
struct TensorAttentionParams {
  TensorMap keys, values;
  AttentionParams attention;
};

}  // namespace shared
}  // namespace rbee
