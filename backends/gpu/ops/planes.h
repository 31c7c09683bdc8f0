#pragma once
// The host's side of kernels/planes.h: views as (batch, channels, height, width).

#include <algorithm>
#include <cstdint>

#include "backends/api/args_conv.h"
#include "backends/gpu/launch.h"
#include "backends/shared/conv_params.h"

namespace rbee::gpu {

inline constexpr uint32_t kPlaneThreads = 256;  // as in kernels/planes.h

// (batch, channels, length) with a height of 1; absent and rank-4 views as they are.
inline View as_planes(View view) {
  if (!view || view.rank != 3) return view;
  view.rank = 4;
  view.sizes[3] = view.sizes[2];
  view.strides[3] = view.strides[2];
  view.sizes[2] = 1;
  view.strides[2] = 0;
  return view;
}

inline Conv2dArgs as_planes(const Conv1dArgs& args) {
  return {.x = as_planes(args.x),
          .weight = as_planes(args.weight),
          .bias = args.bias,
          .y = as_planes(args.y),
          .stride_w = args.stride,
          .padding_w = args.padding,
          .dilation_w = args.dilation,
          .groups = args.groups};
}

inline void copy_strides(int64_t (&to)[4], const View& view) {
  std::copy_n(view.strides, 4, to);
}

// One thread for each of params.count results, of which a launch has 2^31 at most: AMD counts the
// threads of one in 32 bits.
template <typename Params>
void launch_planes(Stream& stream, const char* op, const char* family, const KernelName& kernel,
                   Params params) {
  constexpr int64_t kMost = int64_t{1} << 31;
  for (params.first = 0; params.first < params.count; params.first += kMost) {
    const int64_t results = std::min(kMost, params.count - params.first);
    launch(stream,
           {.op = op,
            .family = family,
            .kernel = kernel,
            .grid = {.x = blocks_for(results, kPlaneThreads)},
            .threads = kPlaneThreads},
           params);
  }
}

}  // namespace rbee::gpu
