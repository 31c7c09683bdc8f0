#include "rbee/models/image/layers.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/upsample.h"

namespace rbee::models {

bool multiplies_int8(std::string_view weight) {
  constexpr std::string_view kFloats[] = {
      "conv_in",    "conv_out",        "quant_conv", "time_emb",       "add_embedding",
      "norm_out",   "time_text_embed", "x_embedder", "pos_embed.proj", "controlnet_cond_embedding",
      "t_embedder", "cap_embedder",    "final_layer"};
  // A transformer's last layer; blocks have one of that name, too.
  if (weight.starts_with("proj_out.")) return false;
  return std::ranges::none_of(
      kFloats, [&](std::string_view part) { return weight.find(part) != std::string_view::npos; });
}

Tensor embedding_frequencies(int64_t width, double shift, Device& device) {
  const int64_t half = width / 2;
  check(static_cast<double>(half) > shift, "freq_shift", shift, ", wanted less than the ", half,
        " frequencies of an embedding");
  std::vector<float> values;
  for (int64_t i = 0; i < half; ++i) {
    const double exponent = static_cast<double>(i) / (static_cast<double>(half) - shift);
    values.push_back(static_cast<float>(std::exp(-std::log(10000.0) * exponent)));
  }
  return from_host<float>(values, {half}, device);
}

Tensor sinusoids(const Tensor& values, const Tensor& frequencies, SinusoidOrder order) {
  const Tensor angles = values.unsqueeze(Axis{1}) * frequencies.unsqueeze(Axis{0});
  const Tensor cosines = unary(UnaryOp::cos, angles), sines = unary(UnaryOp::sin, angles);
  if (order == SinusoidOrder::cos_first) return concat({cosines, sines}, Axis{1});
  return concat({sines, cosines}, Axis{1});
}

VectorMlp::VectorMlp(const nn::WeightScope& scope, int64_t in, int64_t width)
    : activations_(scope.activations()),
      first_(scope / "linear_1", {.in = in, .out = width, .bias = nn::Bias::required}),
      second_(scope / "linear_2", {.in = width, .out = width, .bias = nn::Bias::required}) {}

Tensor VectorMlp::operator()(const Tensor& x) const {
  return second_(unary(UnaryOp::silu, first_(cast(x, activations_))));
}

PictureResnet::PictureResnet(const nn::WeightScope& scope, const ResnetSpec& spec) {
  const auto norm = [&](int64_t channels) {
    return nn::GroupNormSpec{.channels = channels,
                             .groups = spec.groups,
                             .eps = spec.eps,
                             .activation = NormActivation::silu};
  };
  norm1_ = nn::GroupNorm(scope / "norm1", norm(spec.in));
  conv1_ = nn::Conv2d(scope / "conv1", {.in = spec.in, .out = spec.out});
  norm2_ = nn::GroupNorm(scope / "norm2", norm(spec.out));
  conv2_ = nn::Conv2d(scope / "conv2", {.in = spec.out, .out = spec.out});
  if (spec.time_width > 0) {
    time_ = nn::Linear(scope / "time_emb_proj",
                       {.in = spec.time_width, .out = spec.out, .bias = nn::Bias::required});
  }
  if (spec.in != spec.out) {
    shortcut_ = nn::Conv2d(scope / "conv_shortcut", {.in = spec.in, .out = spec.out, .kernel = 1});
  }
}

Tensor PictureResnet::operator()(const Tensor& x, const Tensor& time, Circular circular) const {
  ImageConvOptions first = padded(1, circular);
  first.channel_add = time;
  const Tensor h = conv1_(norm1_(x), first);
  ImageConvOptions second = padded(1, circular);
  second.residual = shortcut_.defined() ? shortcut_(x) : x;
  return conv2_(norm2_(h), second);
}

Tensor upsample_conv(const Tensor& x, const nn::Conv2d& conv, int64_t height, int64_t width,
                     Circular circular) {
  if (height == 2 * x.dim(1) && width == 2 * x.dim(2)) {
    ImageConvOptions options = padded(conv.padding(), circular);
    options.upsample = true;
    return conv(x, options);
  }
  // The convolution does not see past the cut, so pad first.
  const Tensor planes = x.permute({0, 3, 1, 2});
  const Tensor larger = upsample_nearest2d(planes, 2 * x.dim(1), 2 * x.dim(2));
  const Tensor cut = larger.slice(Axis{2}, 0, height).slice(Axis{3}, 0, width);
  return conv(contiguous(cut.permute({0, 2, 3, 1})), circular);
}

Tensor split_rows(const Tensor& x, int64_t batch) {
  return x.transpose(Axis{0}, Axis{1}).split_last(batch).permute({1, 2, 0});
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.split_last(heads).permute({0, 2, 1, 3});
}

Tensor join_heads(const Tensor& x) {
  const auto [batch, heads, tokens, dim] = x.dims<4>();
  return contiguous(x.permute({0, 2, 1, 3})).reshape({batch, tokens, heads * dim});
}

}  // namespace rbee::models
