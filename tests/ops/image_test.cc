// The functions of rbee/ops/image.h on every device: packed weights equal plain ones, the
// channels-last forms equal the channels-first operations, and every check names both values.
#include "rbee/ops/image.h"

#include <gtest/gtest.h>

#include "rbee/ops/concat.h"
#include "rbee/ops/conv.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/norm.h"
#include "rbee/ops/upsample.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_table.h"
#include "tests/support/tolerance.h"

namespace rbee::harness {
namespace {

// Values in [-1, 1] without a short period.
Tensor values(const Shape& shape, Device& device, int salt = 0) {
  int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) count *= shape[i];
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto mixed = static_cast<uint32_t>(i + 1) * 2654435761u + static_cast<uint32_t>(salt);
    out[i] = static_cast<float>(mixed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return from_host<float>(out, shape, device);
}

// (batch, channels, height, width) as (batch, height, width, channels), a view.
Tensor channels_last(const Tensor& x) {
  return x.permute({0, 2, 3, 1});
}

void expect_close(const Tensor& got, const Tensor& want) {
  const Tolerance allowed = tolerance(Family::product, DType::f32, DeviceKind::cpu);
  const Comparison result = compare_values(read_values(got), read_values(want), allowed);
  EXPECT_TRUE(result.ok) << result.first_failure;
}

TEST(ImageConv, EqualsTheChannelsFirstOne) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 20, 9, 11}, *device), weight = values({37, 20, 3, 3}, *device, 1);
    const Tensor bias = values({37}, *device, 2);
    const Tensor want = conv2d(x, weight, bias, {.padding_h = 1, .padding_w = 1});
    const ConvWeights packed{.weight = pack_conv_weight(weight), .bias = bias};
    EXPECT_EQ(packed.weight.shape(), Shape({37, 3, 3, 20}));
    expect_close(image_conv(channels_last(x), packed, padded(1)), channels_last(want));
    const Tensor halved =
        conv2d(x, weight, bias, {.stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1});
    ImageConvOptions half = padded(1);
    half.stride = 2;
    expect_close(image_conv(channels_last(x), packed, half), channels_last(halved));
  }
}

TEST(ImageConv, EnlargesAndAdds) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 8, 5, 6}, *device), weight = values({16, 8, 3, 3}, *device, 1);
    const Tensor channels = values({2, 16}, *device, 2);
    const Tensor residual = values({2, 10, 12, 16}, *device, 3);
    const Tensor enlarged = upsample_nearest2d(x, 10, 12);
    const Tensor conv = conv2d(enlarged, weight, {}, {.padding_h = 1, .padding_w = 1});
    const Tensor want =
        contiguous(channels_last(conv)) + channels.reshape({2, 1, 1, 16}) + residual;
    ImageConvOptions options = padded(1);
    options.upsample = true;
    options.channel_add = channels;
    options.residual = residual;
    expect_close(image_conv(channels_last(x), {.weight = pack_conv_weight(weight)}, options), want);
  }
}

// Weights of every type with panels for linear layers, odd and even depths, and filters of more
// rows than one panel.
TEST(ImageConv, PackedWeightsGiveWhatPlainOnesGive) {
  for (Device* device : all_devices()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t in : {3, 32, 130}) {
        SCOPED_TRACE(cat(device->id(), ' ', dtype, ' ', in));
        const Tensor x = values({1, 7, 6, in}, *device);
        const Tensor weight = cast(values({35, in, 3, 3}, *device, 1), dtype);
        const Tensor plain = contiguous(weight.permute({0, 2, 3, 1}));
        const Tensor packed = pack_conv_weight(weight);
        const Tensor want = image_conv(x, {.weight = plain}, padded(1));
        expect_close(image_conv(x, {.weight = packed}, padded(1)), want);
      }
    }
  }
}

Tensor tensor(const Shape& shape, DType dtype = DType::f32) {
  return zeros(shape, dtype, *all_devices().front());
}

// A circular picture equals the middle one of several copies side by side.
TEST(ImageConv, CircularPaddingIsThatOfPicturesSideBySide) {
  struct Case {
    Circular circular;
    int64_t stride = 1, before = 1, after = 1;
    bool upsample = false;
  };
  for (Device* device : all_devices()) {
    const Tensor x = values({2, 4, 6, 8}, *device), weight = values({16, 8, 3, 3}, *device, 1);
    const ConvWeights weights{.weight = pack_conv_weight(weight), .bias = values({16}, *device, 2)};
    for (const Case& each :
         {Case{{true, true}}, Case{{true, false}}, Case{{false, true}}, Case{{true, true}, 2},
          Case{{true, true}, 2, 0, 1}, Case{{true, true}, 1, 2, 2},
          Case{{true, true}, 1, 1, 1, true}, Case{{false, true}, 1, 1, 1, true},
          Case{{true, false}, 1, 1, 1, true}}) {
      SCOPED_TRACE(cat(device->id(), ' ', each.circular.x, each.circular.y, ' ', each.stride, ' ',
                       each.before, ' ', each.upsample));
      ImageConvOptions options{.stride = each.stride,
                               .pad_top = each.before,
                               .pad_left = each.before,
                               .pad_bottom = each.after,
                               .pad_right = each.after,
                               .upsample = each.upsample};
      const auto beside = [](const Tensor& one, Axis axis) {
        return concat({one, one, one}, axis);
      };
      Tensor many = each.circular.x ? beside(x, Axis{2}) : x;
      if (each.circular.y) many = beside(many, Axis{1});
      const Tensor all = image_conv(many, weights, options);
      options.circular = each.circular;
      const Tensor one = image_conv(x, weights, options);
      // At stride 2, every second pixel; half of them are in the middle picture.
      const int64_t scale = each.upsample ? 2 : 1;
      const int64_t down = each.circular.y ? 4 * scale / each.stride : 0;
      const int64_t right = each.circular.x ? 6 * scale / each.stride : 0;
      expect_close(
          one, contiguous(all.slice(Axis{1}, down, one.dim(1)).slice(Axis{2}, right, one.dim(2))));
    }
  }
}

TEST(ImageConv, CircularPaddingHasItsLimits) {
  const Tensor x = tensor({1, 4, 2, 8});
  const ConvWeights weights{.weight = tensor({8, 3, 3, 8}), .bias = {}};
  ImageConvOptions options = padded(3, {.x = true});
  expect_error("image_conv", "circular", "3", [&] { image_conv(x, weights, options); });
  options = padded(1, {.x = true});
  options.upsample = true;
  options.residual = tensor({1, 8, 4, 8});
  expect_error("image_conv", "circular", "residual", [&] { image_conv(x, weights, options); });
}

TEST(ImageGroupNorm, EqualsTheChannelsFirstOne) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 24, 6, 7}, *device);
    const Tensor weight = values({24}, *device, 1), bias = values({24}, *device, 2);
    const Tensor want = group_norm(x, 4, weight, bias, 1e-5f);
    expect_close(image_group_norm(channels_last(x), 4, weight, bias, 1e-5f), channels_last(want));
    const Tensor active = unary(UnaryOp::silu, want);
    expect_close(image_group_norm(contiguous(channels_last(x)), 4, weight, bias, 1e-5f,
                                  NormActivation::silu),
                 channels_last(active));
  }
}

TEST(ImageErrors, Weights) {
  const Tensor x = tensor({1, 5, 6, 4}), weight = tensor({8, 3, 3, 4});
  expect_error("pack_conv_weight", "weight is undefined", "", [] { pack_conv_weight({}); });
  expect_error("pack_conv_weight", "weight is f32 (8, 4)", "wanted 4 axes",
               [] { pack_conv_weight(tensor({8, 4})); });
  expect_error("pack_conv_weight", "weight is i32", "not a float",
               [] { pack_conv_weight(tensor({8, 4, 1, 1}, DType::i32)); });
  expect_error("image_conv", "weight is undefined", "", [&] { image_conv(x, {}); });
  expect_error("image_conv", "x is f32 (1, 5, 6, 4)", "weight is f32 (8, 3, 3, 5)",
               [&] { image_conv(x, {.weight = tensor({8, 3, 3, 5})}); });
  expect_error("image_conv", "weight is f32 (8, 4)", "wanted 4 axes",
               [&] { image_conv(x, {.weight = tensor({8, 4})}); });
  expect_error("image_conv", "bias is f32 (7)", "wanted (8)",
               [&] { image_conv(x, {.weight = weight, .bias = tensor({7})}); });
  expect_error("image_conv", "x is f32 (1, 5, 6, 4)", "bias is f16 (8)",
               [&] { image_conv(x, {.weight = weight, .bias = tensor({8}, DType::f16)}); });
}

TEST(ImageErrors, Conv) {
  const ConvWeights weights{.weight = tensor({8, 3, 3, 4})};
  const Tensor x = tensor({1, 5, 6, 4});
  const auto with = [&](auto change) {
    ImageConvOptions options;
    change(options);
    return [=] { image_conv(x, weights, options); };
  };
  expect_error("image_conv", "x is undefined", "", [&] { image_conv({}, weights); });
  expect_error("image_conv", "x is f32 (5, 6, 4)", "wanted 4 axes",
               [&] { image_conv(tensor({5, 6, 4}), weights); });
  expect_error("image_conv", "x is u8", "not a float",
               [&] { image_conv(tensor({1, 5, 6, 4}, DType::u8), weights); });
  expect_error("image_conv", "the kernel's height is 3", "padded image has 2",
               [&] { image_conv(tensor({1, 2, 6, 4}), weights); });
  expect_error("image_conv", "stride is 0", "wanted 1 to",
               with([](ImageConvOptions& o) { o.stride = 0; }));
  expect_error("image_conv", "a padding along width is -1", "wanted 0 to",
               with([](ImageConvOptions& o) { o.pad_right = -1; }));
  expect_error("image_conv", "channel_add is f32 (1, 4)", "wanted (1, 8)",
               with([](ImageConvOptions& o) { o.channel_add = tensor({1, 4}); }));
  expect_error("image_conv", "residual is f32 (1, 5, 6, 8)", "wanted (1, 3, 4, 8)",
               with([](ImageConvOptions& o) { o.residual = tensor({1, 5, 6, 8}); }));
  expect_error("image_conv", "x is f32", "residual is bf16",
               with([](ImageConvOptions& o) { o.residual = tensor({1, 3, 4, 8}, DType::bf16); }));
}

TEST(ImageErrors, GroupNorm) {
  const auto norm = [](const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias) {
    return [=] { image_group_norm(x, groups, weight, bias, 1e-5f); };
  };
  const Tensor x = tensor({2, 5, 4, 6});
  expect_error("image_group_norm", "x is undefined", "", norm({}, 1, {}, {}));
  expect_error("image_group_norm", "x is i32", "not a float",
               norm(tensor({2, 6}, DType::i32), 1, {}, {}));
  expect_error("image_group_norm", "x is f32 (6)", "spatial", norm(tensor({6}), 1, {}, {}));
  expect_error("image_group_norm", "x is f32 (2, 5, 4, 6)", "4 equal groups", norm(x, 4, {}, {}));
  expect_error("image_group_norm", "x is f32 (2, 5, 4, 6)", "0 equal groups", norm(x, 0, {}, {}));
  expect_error("image_group_norm", "weight is f32 (5)", "wanted (6)", norm(x, 2, tensor({5}), {}));
  expect_error("image_group_norm", "x is f32", "bias is f16 (6)",
               norm(x, 2, {}, tensor({6}, DType::f16)));
}

}  // namespace
}  // namespace rbee::harness
