#pragma once
// conv1d and conv2d of f32 as matrix products: filters times the patches under them. Patches are
// gathered while b is packed; they are never stored as a whole. Include after a vec header.

#include "backends/api/args_conv.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/gemm_loops.h"

namespace rbee::cpu {
namespace {

// Output pixels of one row that lie side by side in a strip.
struct PixelRun {
  int64_t row, column;  // of the first
  int64_t to, count;    // lanes of the strip
};

struct ConvItems {
  const Conv2dArgs& args;
  int64_t group_in, group_out;  // channels

  // Items are (image, group).
  const float* a(int64_t item) const {
    return static_cast<const float*>(args.weight.data) +
           item % args.groups * group_out * args.weight.strides[0];
  }
  float* y(int64_t item) const {
    return static_cast<float*>(args.y.data) + item / args.groups * args.y.strides[0] +
           item % args.groups * group_out * args.y.strides[1];
  }
  const float* bias(int64_t item) const {
    if (args.bias.data == nullptr) return nullptr;
    return static_cast<const float*>(args.bias.data) +
           item % args.groups * group_out * args.bias.strides[0];
  }

  // Line k = (channel, i, j) of a strip: the pixels under tap (i, j) of the filters.
  void pack(int64_t item, int64_t column, int64_t width, int64_t first, int64_t depth,
            float* to) const {
    PixelRun runs[kTileColumns];
    const int count = split(column, width, runs);
    const float* image = static_cast<const float*>(args.x.data) +
                         item / args.groups * args.x.strides[0] +
                         item % args.groups * group_in * args.x.strides[1];
    const int64_t kernel_h = args.weight.sizes[2], kernel_w = args.weight.sizes[3];
    int64_t channel = first / (kernel_h * kernel_w);
    int64_t i = first / kernel_w % kernel_h;
    int64_t j = first % kernel_w;
    for (int64_t k = 0; k < depth; ++k, to += kTileColumns) {
      const float* x = image + channel * args.x.strides[1];
      for (int r = 0; r < count; ++r) pack_run(x, runs[r], i, j, to + runs[r].to);
      for (int64_t lane = width; lane < kTileColumns; ++lane) to[lane] = 0;
      if (++j < kernel_w) continue;
      j = 0;
      if (++i < kernel_h) continue;
      i = 0;
      ++channel;
    }
  }

 private:
  // Cuts pixels [first, first + width) at the ends of rows.
  int split(int64_t first, int64_t width, PixelRun* runs) const {
    const int64_t row_size = args.y.sizes[3];
    int count = 0;
    for (int64_t to = 0; to < width;) {
      const int64_t row = (first + to) / row_size;
      const int64_t column = (first + to) % row_size;
      const int64_t pixels = smaller(row_size - column, width - to);
      runs[count++] = {row, column, to, pixels};
      to += pixels;
    }
    return count;
  }

  RB_INLINE void pack_run(const float* x, const PixelRun& run, int64_t i, int64_t j,
                          float* to) const {
    const int64_t row = run.row * args.stride_h - args.padding_h + i * args.dilation_h;
    const int64_t column = run.column * args.stride_w - args.padding_w + j * args.dilation_w;
    const int64_t last = column + (run.count - 1) * args.stride_w;
    if (row < 0 || row >= args.x.sizes[2]) {
      for (int64_t p = 0; p < run.count; ++p) to[p] = 0;
      return;
    }
    const float* line = x + row * args.x.strides[2];
    const int64_t step = args.stride_w * args.x.strides[3];
    if (column < 0 || last >= args.x.sizes[3]) {
      for (int64_t p = 0; p < run.count; ++p) {
        const int64_t from = column + p * args.stride_w;
        to[p] = from >= 0 && from < args.x.sizes[3] ? line[from * args.x.strides[3]] : 0.0f;
      }
      return;
    }
    line += column * args.x.strides[3];
    if (step == 1 && run.count == kTileColumns) {
      store(to, load(line));
      store(to + kLanes, load(line + kLanes));
      return;
    }
    for (int64_t p = 0; p < run.count; ++p) to[p] = line[p * step];
  }
};

const char* refuse_conv2d(const Conv2dArgs& args) {
  if (args.x.dtype != DType::f32) return "takes f32";
  const View &w = args.weight, &y = args.y;
  const bool whole_filters =
      w.strides[3] == 1 && w.strides[2] == w.sizes[3] && w.strides[1] == w.sizes[2] * w.sizes[3];
  if (!whole_filters) return "takes filters without gaps";
  if (y.strides[2] != y.sizes[3] * y.strides[3]) return "writes images whose rows have no gaps";
  return nullptr;
}

void run_conv2d(const Conv2dArgs& args, Stream&) {
  Gemm g;
  g.items = args.x.sizes[0] * args.groups;
  g.rows = args.weight.sizes[0] / args.groups;
  g.columns = args.y.sizes[2] * args.y.sizes[3];
  g.depth = args.weight.sizes[1] * args.weight.sizes[2] * args.weight.sizes[3];
  g.a_row = args.weight.strides[0];
  g.a_depth = 1;
  g.y_row = args.y.strides[1];
  g.y_column = args.y.strides[3];
  g.bias_step = args.bias.strides[0];
  run_gemm(g, ConvItems{args, args.weight.sizes[1], g.rows});
}

// A length as the width of an image of one row.
RB_INLINE View as_image(View view) {
  view.sizes[3] = view.sizes[2];
  view.strides[3] = view.strides[2];
  view.sizes[2] = 1;
  view.strides[2] = view.sizes[3] * view.strides[3];
  view.rank = 4;
  return view;
}

RB_INLINE Conv2dArgs as_conv2d(const Conv1dArgs& args) {
  Conv2dArgs image;
  image.x = as_image(args.x);
  image.weight = as_image(args.weight);
  image.bias = args.bias;
  image.y = as_image(args.y);
  image.stride_w = args.stride;
  image.padding_w = args.padding;
  image.dilation_w = args.dilation;
  image.groups = args.groups;
  return image;
}

const char* refuse_conv1d(const Conv1dArgs& args) {
  return refuse_conv2d(as_conv2d(args));
}

void run_conv1d(const Conv1dArgs& args, Stream& stream) {
  run_conv2d(as_conv2d(args), stream);
}

}  // namespace
}  // namespace rbee::cpu
