#include "backends/gpu/ops/image_conv.h"

#include <limits>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/planes.h"
#include "backends/gpu/product_tiles.h"

namespace rbee::gpu {
namespace {

int32_t narrow(int64_t n) {
  return static_cast<int32_t>(n);
}

shared::Divider divider(int64_t n) {
  return shared::make_divider(static_cast<uint32_t>(n));
}

int64_t pixels_of(const View& y) {
  return y.size(0) * y.size(1) * y.size(2);
}

int64_t depth_of(const View& weight) {
  return weight.size(1) * weight.size(2) * weight.size(3);
}

const char* refuse_counts(const ImageConvArgs& args) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const View &x = args.x, &weight = args.weight;
  if (weight.packing != 0) return "reads plain weights only";
  if (is_quantized(weight.dtype)) return "reads float weights only";
  if (pixels_of(args.y) >= kMost || depth_of(weight) >= kMost || weight.size(0) >= kMost ||
      x.size(1) >= kMost || x.size(2) >= kMost || args.stride * args.y.size(1) >= kMost ||
      args.stride * args.y.size(2) >= kMost) {
    return "counts in 32 bits";
  }
  return nullptr;
}

void run_plain(const ImageConvArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  const shared::ImageConvParams params = image_conv_params(args);
  launch(stream,
         {.op = "image_conv",
          .family = "image_conv_plain",
          .kernel = KernelName("image_conv", args.x.dtype),
          .grid = {.x = static_cast<uint32_t>(product_tiles(params.pixels, params.outs))},
          .threads = kProductThreads},
         params);
}

bool aligned(const View& view) {
  return !view || reinterpret_cast<uintptr_t>(view.data) % 16 == 0;
}

int64_t tile_count(const TensorTile& tile, int64_t pixels, int64_t outs) {
  return (pixels + tile.rows - 1) / tile.rows * ((outs + tile.outs - 1) / tile.outs);
}

}  // namespace

shared::ImageConvParams image_conv_params(const ImageConvArgs& args) {
  const View &x = args.x, &weight = args.weight, &y = args.y;
  const uint32_t enlarged = args.upsample ? 1 : 0;
  shared::ImageConvParams params{
      .x = x.data,
      .weight = weight.data,
      .bias = args.bias.data,
      .channel_add = args.channel_add.data,
      .residual = args.residual.data,
      .y = y.data,
      .x_strides = {},
      .residual_strides = {},
      .row_stride = narrow(x.stride(1)),
      .pixel_stride = narrow(x.stride(2)),
      .bias_step = args.bias.strides[0],
      .channel_strides = {args.channel_add.strides[0], args.channel_add.strides[1]},
      .pixels = narrow(pixels_of(y)),
      .outs = narrow(y.size(3)),
      .depth = narrow(depth_of(weight)),
      .channels = narrow(weight.size(3)),
      .kernel_h = narrow(weight.size(1)),
      .kernel_w = narrow(weight.size(2)),
      .size = {narrow(x.size(1)) << enlarged, narrow(x.size(2)) << enlarged},
      .stride = narrow(args.stride),
      .padding = {narrow(args.pad_top), narrow(args.pad_left)},
      .enlarged = enlarged,
      .weight_type = float_number(weight.dtype),
      .out_width = divider(y.size(2)),
      .out_height = divider(y.size(1)),
      .out_pixels = divider(y.size(1) * y.size(2)),
      .by_channels = divider(std::max<int64_t>(weight.size(3), 1)),
      .by_kernel_w = divider(weight.size(2))};
  copy_strides(params.x_strides, x);
  copy_strides(params.residual_strides, args.residual);
  return params;
}

const char* refuse_tensor_image_conv(const ImageConvArgs& args) {
  const View &x = args.x, &weight = args.weight;
  if (x.dtype != DType::f16 && x.dtype != DType::bf16) return "takes f16 and bf16";
  if (weight.dtype != x.dtype) return "takes operands of one type";
  if (weight.size(3) % 8 != 0 || weight.numel() == 0) return "takes multiples of 8 channels";
  for (int axis = 0; axis < 3; ++axis) {
    if (x.stride(axis) % 8 != 0) return "takes pixels on multiples of 16 bytes";
  }
  if (x.stride(3) != 1) return "takes pixels without gaps";
  const int64_t span = (x.size(1) - 1) * x.stride(1) + x.size(2) * x.stride(2);
  if (span > std::numeric_limits<int32_t>::max()) return "counts an image's elements in 32 bits";
  for (const View* view : {&args.bias, &args.channel_add, &args.residual}) {
    if (*view && !view->contiguous()) return "adds what has no gaps";
  }
  for (const View* view : {&x, &weight, &args.y, &args.bias, &args.channel_add, &args.residual}) {
    if (!aligned(*view)) return "an operand is not 16-byte aligned";
  }
  return refuse_counts(args);
}

void run_tensor_image_conv(const TensorTiles& tiles, const ImageConvArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  const shared::ImageConvParams params = image_conv_params(args);
  const bool large = tile_count(tiles.large, params.pixels, params.outs) >=
                     block_places(device_of(stream).properties());
  const TensorTile& tile = large ? tiles.large : tiles.small;
  launch(stream,
         {.op = "image_conv",
          .family = tiles.family,
          .kernel = KernelName("image_conv", args.x.dtype, tile.name),
          .grid = {.x = static_cast<uint32_t>(tile_count(tile, params.pixels, params.outs))},
          .threads = tile.threads,
          .shared_bytes = tile.shared_bytes},
         params);
}

const Impl<ImageConvArgs> image_conv_plain{"gpu", refuse_counts, run_plain};

}  // namespace rbee::gpu
