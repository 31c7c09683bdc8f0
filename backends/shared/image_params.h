#pragma once
// Images with the channels last: see backends/api/args_image.h. Strides are in elements.

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// A convolution as the product of patches (pixels, depth) and filters (outs, depth), whose depth is
// (rows, columns, channels) of the kernel.
struct ImageConvParams {
  const void* x;
  const void* weight;       // contiguous
  const void* bias;         // null: none, as the next two
  const void* channel_add;  // (images, outs)
  const void* residual;
  void* y;  // contiguous
  i64 x_strides[4], residual_strides[4];
  i32 row_stride, pixel_stride;  // of x, where 32 bits count an image's elements
  i64 bias_step, channel_strides[2];
  i32 pixels, outs, depth;           // pixels: of all images
  i32 channels, kernel_h, kernel_w;  // of the filters
  i32 size[2];                       // of an image of x as it is seen: enlarged
  i32 stride, padding[2];
  u32 enlarged;     // 1: pixels are read at half of their place
  u32 weight_type;  // 0: f32, 1: f16, 2: bf16, 3: f64, 4: f8e4m3
  Divider out_width, out_height, out_pixels;
  Divider by_channels, by_kernel_w;
};

// The most groups that a block normalises, and the most pixels whose channels a thread holds.
constexpr i32 kMostNormGroups = 64;
constexpr i32 kNormHeld = 7;

// Group norm of (images, pixels, channels) in two steps: the moments of each chunk of pixels, for
// parts of groups; the result. If one step does it, all pixels are one chunk, a part is a group,
// and a range is whole groups.
struct ImageNormParams {
  const void* x;
  const void* weight;   // null: 1
  const void* bias;     // null: 0
  void* y;              // contiguous
  void* chunk_moments;  // (images, channels / part, chunks, 2): mean, sum of squared distances
  i64 image_stride, pixel_stride, channel_stride;
  i64 weight_step, bias_step;         // 1 where several channels are read at a time
  i32 pixels, channels, width;        // width: channels of a group
  i32 part;                           // channels whose moments one wave joins: divides the width
  i32 range, ranges;                  // channels of a block, whole parts; blocks for all channels
  i32 chunk, chunks;                  // pixels of a chunk, chunks of an image
  double by_part, by_chunk, by_last;  // 1 / part, 1 / chunk, 1 / pixels of the last chunk
  float eps;
  u32 silu;
};

}  // namespace shared
}  // namespace rbee
