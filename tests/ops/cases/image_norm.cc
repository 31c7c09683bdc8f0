// Group norms of channels-last images, alone and followed by SiLU.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct ImageNormCase {
  Layout x;  // (batch, pixels, channels)
  int32_t groups = 1;
  NormActivation activation = NormActivation::none;
  DType dtype = DType::f32;
  bool weight = true, bias = true;
  double centre = 0;  // of x
  float eps = 1e-5f;
  bool big = false;
};

std::string name_of(const ImageNormCase& c) {
  return cat(c.dtype, ' ', c.x, " groups ", c.groups,
             c.activation == NormActivation::silu ? " silu" : "", c.weight ? "" : " no weight",
             c.bias ? "" : " no bias", c.centre != 0 ? " far from zero" : "");
}

ImageGroupNormArgs build(const ImageNormCase& c, Scene& scene) {
  const int64_t channels = c.x.shape[2];
  ImageGroupNormArgs args{.groups = c.groups, .eps = c.eps, .activation = c.activation};
  args.x = scene.input(c.x, c.dtype, {c.centre - 2, c.centre + 2});
  if (c.weight) args.weight = scene.input({{channels}}, c.dtype, {0.5, 1.5});
  if (c.bias) args.bias = scene.input({{channels}}, c.dtype);
  args.y = scene.output({c.x.shape}, c.dtype);
  scene.flops = 10.0 * static_cast<double>(args.x.numel());
  return args;
}

struct Moments {
  double mean = 0, variance = 0;
};

// The elements of group `group` of image n: i with i / channels in the image and i % channels in
// the group.
Moments moments(const ImageNormCase& c, const HostArray& x, int64_t n, int64_t group) {
  const int64_t pixels = c.x.shape[1], channels = c.x.shape[2];
  const int64_t width = channels / c.groups;
  const auto count = static_cast<double>(pixels * width);
  Moments out;
  const auto each = [&](auto&& body) {
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t k = 0; k < width; ++k) {
        body(x[(n * pixels + p) * channels + group * width + k]);
      }
    }
  };
  each([&](double value) { out.mean += value / count; });
  each([&](double value) { out.variance += std::pow(value - out.mean, 2) / count; });
  return out;
}

std::vector<HostArray> formula(const ImageNormCase& c, const std::vector<HostArray>& in) {
  HostArray y = in[0];
  const int64_t channels = c.x.shape[2], image = c.x.shape[1] * channels;
  const int64_t width = channels / c.groups;
  std::vector<Moments> of;
  for (int64_t i = 0; i < c.x.shape[0] * c.groups; ++i) {
    of.push_back(moments(c, in[0], i / c.groups, i % c.groups));
  }
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t channel = i % channels;
    const Moments& m = of[static_cast<size_t>(i / image * c.groups + channel / width)];
    y[i] = (y[i] - m.mean) / std::sqrt(m.variance + c.eps);
    if (c.weight) y[i] *= in[1][channel];
    if (c.bias) y[i] += in[c.weight ? 2 : 1][channel];
    if (c.activation == NormActivation::silu) y[i] /= 1 + std::exp(-y[i]);
  }
  return {y};
}

std::vector<ImageNormCase> cases() {
  std::vector<ImageNormCase> out;
  constexpr auto kSilu = NormActivation::silu;
  for (const DType dtype : kFloatTypes) {
    out.push_back({.x = {{2, 35, 6}}, .groups = 3, .dtype = dtype});
    out.push_back({.x = {{2, 30, 64}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{3, 11, 8}, Form::gaps}, .groups = 2, .dtype = dtype, .bias = false});
    out.push_back({.x = {{2, 27, 12}, Form::transposed},
                   .groups = 4,
                   .activation = kSilu,
                   .dtype = dtype,
                   .weight = false});
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    // Groups of 10 and 4 channels, of one vector and of more; several chunks of pixels.
    out.push_back({.x = {{2, 256, 320}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{1, 900, 128}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{2, 70, 96}}, .groups = 4, .dtype = dtype});
    out.push_back({.x = {{1, 33, 33}}, .groups = 11, .dtype = dtype});
    out.push_back({.x = {{1, 5000, 64}}, .groups = 32, .dtype = dtype});
    // More pixels than threads hold, so each block joins chunks: groups of 10, 40, 60 and 80
    // channels, the last chunk shorter.
    out.push_back({.x = {{1, 1030, 1280}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{2, 1025, 33}}, .groups = 11, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{1, 1024, 320}}, .groups = 32, .dtype = dtype});
    out.push_back({.x = {{1, 320, 960}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{2, 300, 1920}}, .groups = 32, .dtype = dtype});
    out.push_back({.x = {{1, 320, 2560}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    // Few pixels, which fit in threads.
    out.push_back({.x = {{2, 64, 640}}, .groups = 32, .dtype = dtype});
    out.push_back({.x = {{1, 64, 1280}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{1, 17, 2560}}, .groups = 32, .dtype = dtype});
    out.push_back({.x = {{2, 9, 960}}, .groups = 32, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{1, 80, 1920}}, .groups = 32, .dtype = dtype});
    // Groups wider than one read of a block, joined from parts.
    out.push_back({.x = {{2, 12, 6400}}, .groups = 2, .activation = kSilu, .dtype = dtype});
    out.push_back({.x = {{1, 30, 1000}, Form::gaps}, .groups = 2, .dtype = dtype});
    // Groups of one channel.
    out.push_back({.x = {{2, 40, 128}}, .groups = 128, .dtype = dtype});
  }
  // The mean of squares minus the squared mean would lose most digits.
  out.push_back({.x = {{1, 500, 64}}, .groups = 8, .centre = 300});
  out.push_back({.x = {{1, 5000, 64}}, .groups = 8, .centre = 300});
  out.push_back({.x = {{1, 1, 1}}});
  out.push_back({.x = {{0, 4, 6}}, .groups = 2});
  out.push_back({.x = {{2, 0, 6}}, .groups = 2});
  out.push_back({.x = {{4, 9, 16}}, .groups = 4, .weight = false, .bias = false, .eps = 1e-2f});
  for (const DType dtype : {DType::f32, DType::f16}) {
    out.push_back(
        {.x = {{1, 4096, 320}}, .groups = 32, .activation = kSilu, .dtype = dtype, .big = true});
  }
  // From a step of Stable Diffusion 1.5 at 512 x 512, two images.
  for (const Shape& shape : {Shape{2, 4096, 320}, Shape{2, 1024, 320}, Shape{2, 1024, 640},
                             Shape{2, 1024, 1920}, Shape{2, 256, 1280}, Shape{2, 256, 1920},
                             Shape{2, 256, 2560}, Shape{2, 64, 1280}, Shape{2, 64, 2560}}) {
    out.push_back(
        {.x = {shape}, .groups = 32, .activation = kSilu, .dtype = DType::f16, .big = true});
  }
  return out;
}

// The input of silu has a norm's error; far from zero, the difference from the mean has fewer
// digits than x.
OpTable table() {
  OpTable out("image_group_norm");
  for (const ImageNormCase& c : cases()) {
    out.add<ImageGroupNormArgs>(&KernelTable::image_group_norm,
                                {.name = name_of(c),
                                 .family = c.centre != 0 ? Family::reduction : Family::norm,
                                 .build = [c](Scene& scene) { return build(c, scene); },
                                 .formula = [c](const auto& inputs) { return formula(c, inputs); },
                                 .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
