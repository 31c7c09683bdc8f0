#include "rbee/models/image/autoencoder.h"

#include <algorithm>
#include <array>

#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "VAE";
constexpr float kNormEps = 1e-6f;
constexpr double kLowestLogVariance = -30, kHighestLogVariance = 20;

ResnetSpec resnet(int64_t in, int64_t out, const AutoencoderConfig& config) {
  return {.in = in, .out = out, .groups = config.groups, .eps = kNormEps};
}

// Folders older than diffusers 0.15 have the second name.
nn::WeightScope either(const nn::WeightScope& scope, const char* name, const char* old_name) {
  return (scope / name).has("weight") ? scope / name : scope / old_name;
}

Tensor clamped(const Tensor& x, double lowest, double highest) {
  Tensor low = empty({1}, x.dtype(), x.device()), high = empty({1}, x.dtype(), x.device());
  fill_(low, lowest);
  fill_(high, highest);
  return binary(BinaryOp::minimum, binary(BinaryOp::maximum, x, low), high);
}

}  // namespace

AutoencoderConfig AutoencoderConfig::read(const io::JsonConfig& config) {
  AutoencoderConfig out;
  out.channels = config.integers("block_out_channels", {1, 1 << 16});
  check(!out.channels.empty() && out.channels.size() <= 8, config.describe("block_out_channels"),
        "it lists ", out.channels.size(), " levels, wanted 1 to 8");
  for (const auto& [field, known] : {std::pair{"down_block_types", "DownEncoderBlock2D"},
                                     std::pair{"up_block_types", "UpDecoderBlock2D"}}) {
    for (const std::string& type : config.texts(field)) {
      if (type == known) continue;
      fail(Code::unsupported, config.describe(field), "\"", type,
           "\" is not implemented; known is ", known);
    }
  }
  if (config.has("latents_mean") || config.has("latents_std")) {
    fail(Code::unsupported, config.describe("latents_mean"), "latents with a mean and a deviation ",
         "for each channel are not implemented");
  }
  out.resnets = config.integer_or("layers_per_block", 1, {1, 64});
  out.latent_channels = config.integer_or("latent_channels", 4, {1, 1 << 10});
  out.groups = config.integer_or("norm_num_groups", 32);
  out.middle_attention = config.flag_or("mid_block_add_attention", true);
  out.quant_conv = config.flag_or("use_quant_conv", true);
  out.post_quant_conv = config.flag_or("use_post_quant_conv", true);
  out.force_upcast = config.flag_or("force_upcast", true);
  out.scaling_factor =
      static_cast<float>(config.number_or("scaling_factor", 0.18215, io::kAboveZero));
  out.shift_factor = static_cast<float>(config.number_or("shift_factor", 0));
  return out;
}

AutoencoderMiddle::AutoencoderMiddle(const nn::WeightScope& scope, int64_t channels,
                                     const AutoencoderConfig& config)
    : before_(scope / "resnets.0", resnet(channels, channels, config)),
      after_(scope / "resnets.1", resnet(channels, channels, config)),
      attends_(config.middle_attention) {
  if (!attends_) return;
  const nn::WeightScope attention = scope / "attentions.0";
  const nn::LinearShape square{.in = channels, .out = channels, .bias = nn::Bias::required};
  norm_ = nn::GroupNorm(attention / "group_norm",
                        {.channels = channels, .groups = config.groups, .eps = kNormEps});
  query_ = nn::Linear(either(attention, "to_q", "query"), square);
  key_ = nn::Linear(either(attention, "to_k", "key"), square);
  value_ = nn::Linear(either(attention, "to_v", "value"), square);
  nn::adjoin(scope, {&query_, &key_, &value_});
  output_ = nn::Linear(either(attention, "to_out.0", "proj_attn"), square);
}

Tensor AutoencoderMiddle::attend(const Tensor& x) const {
  const auto [batch, height, width, channels] = x.dims<4>();
  const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
  const Tensor rows = norm_(x).reshape({batch * height * width, channels});
  const std::vector<Tensor> qkv = linear_many(rows, layers);
  const auto head = [&](const Tensor& y) { return split_rows(y, batch).unsqueeze(Axis{1}); };
  const Tensor y = attention(head(qkv[0]), head(qkv[1]), head(qkv[2]), {});
  return output_.over_last(y).reshape(x.shape());
}

Tensor AutoencoderMiddle::operator()(const Tensor& x, Circular circular) const {
  Tensor h = before_(x, {}, circular);
  if (attends_) h = h + attend(h);
  return after_(h, {}, circular);
}

AutoencoderHalf::AutoencoderHalf(const nn::WeightScope& scope, const AutoencoderConfig& config,
                                 Direction direction)
    : direction_(direction) {
  constexpr int64_t kColours = 3;
  const bool encodes = direction == Direction::encoder;
  std::vector<int64_t> channels = config.channels;
  if (!encodes) std::ranges::reverse(channels);
  int64_t before = channels.front();
  in_ = nn::Conv2d(scope / "conv_in",
                   {.in = encodes ? kColours : config.latent_channels, .out = before});
  for (size_t i = 0; i < channels.size(); ++i) {
    const nn::WeightScope level = scope / cat(encodes ? "down_blocks." : "up_blocks.", i);
    std::vector<PictureResnet>& resnets = levels_.emplace_back();
    for (int64_t j = 0; j < config.resnets + (encodes ? 0 : 1); ++j) {
      resnets.emplace_back(level / "resnets" / cat(j), resnet(before, channels[i], config));
      before = channels[i];
    }
    if (i + 1 == channels.size()) continue;
    resamplers_.emplace_back(level / (encodes ? "downsamplers.0.conv" : "upsamplers.0.conv"),
                             nn::Conv2dShape{.in = before, .out = before});
  }
  middle_ =
      std::make_unique<AutoencoderMiddle>(scope / "mid_block", config.channels.back(), config);
  out_norm_ = nn::GroupNorm(scope / "conv_norm_out", {.channels = before,
                                                      .groups = config.groups,
                                                      .eps = kNormEps,
                                                      .activation = NormActivation::silu});
  out_ = nn::Conv2d(scope / "conv_out",
                    {.in = before, .out = encodes ? 2 * config.latent_channels : kColours});
}

Tensor AutoencoderHalf::through_levels(Tensor x, Circular circular, const Between& between) const {
  // The encoder's halving pads only the right and the bottom.
  const ImageConvOptions halved{.stride = 2, .pad_bottom = 1, .pad_right = 1, .circular = circular};
  for (size_t i = 0; i < levels_.size(); ++i) {
    for (const PictureResnet& resnet : levels_[i]) {
      if (between) between();
      x = resnet(x, {}, circular);
    }
    if (i == resamplers_.size()) continue;
    x = direction_ == Direction::encoder
            ? resamplers_[i](x, halved)
            : upsample_conv(x, resamplers_[i], 2 * x.dim(1), 2 * x.dim(2), circular);
  }
  return x;
}

Tensor AutoencoderHalf::operator()(const Tensor& x, Circular circular,
                                   const Between& between) const {
  Tensor h = in_(x, circular);
  if (direction_ == Direction::encoder) {
    h = (*middle_)(through_levels(h, circular, between), circular);
  } else {
    h = through_levels((*middle_)(h, circular), circular, between);
  }
  return out_(out_norm_(h), circular);
}

Autoencoder::Autoencoder(const nn::WeightScope& scope, const AutoencoderConfig& config)
    : activations_(scope.activations()) {
  using Direction = AutoencoderHalf::Direction;
  const int64_t latent = config.latent_channels;
  if ((scope / "encoder.conv_in").has("weight")) {
    encoder_ = std::make_unique<AutoencoderHalf>(scope / "encoder", config, Direction::encoder);
    if (config.quant_conv) {
      quant_ = nn::Conv2d(scope / "quant_conv", {.in = 2 * latent, .out = 2 * latent, .kernel = 1});
    }
  }
  decoder_ = std::make_unique<AutoencoderHalf>(scope / "decoder", config, Direction::decoder);
  if (config.post_quant_conv) {
    post_quant_ = nn::Conv2d(scope / "post_quant_conv", {.in = latent, .out = latent, .kernel = 1});
  }
  info_.latent_channels = latent;
  info_.scale = int64_t{1} << (config.channels.size() - 1);
  info_.scaling_factor = config.scaling_factor;
  info_.shift_factor = config.shift_factor;
}

LatentDistribution Autoencoder::encode(const Tensor& image, Circular circular) const {
  if (encoder_ == nullptr) {
    fail(Code::unsupported, kOp, "the checkpoint has no encoder, so pictures cannot be read");
  }
  check(image.rank() == 4 && image.dim(3) == 3 && image.dim(1) % info_.scale == 0 &&
            image.dim(2) % info_.scale == 0,
        kOp, "the picture is ", image, ", wanted (batch, height, width, 3) with sizes that are ",
        "multiples of ", info_.scale);
  Tensor moments = (*encoder_)(cast(image, activations_), circular);
  if (quant_.defined()) moments = quant_(moments);
  moments = cast(moments, DType::f32);
  const int64_t latent = info_.latent_channels;
  const Tensor log_variance = moments.slice(Axis{3}, latent, latent);
  return {contiguous(moments.slice(Axis{3}, 0, latent)),
          clamped(log_variance, kLowestLogVariance, kHighestLogVariance)};
}

Tensor Autoencoder::decode(const Tensor& latent, const Between& between, Circular circular) const {
  check(latent.rank() == 4 && latent.dim(3) == info_.latent_channels, kOp, "the latent is ", latent,
        ", wanted (batch, height, width, ", info_.latent_channels, ")");
  Tensor x = cast(latent, activations_);
  if (post_quant_.defined()) x = post_quant_(x);
  return cast((*decoder_)(x, circular, between), DType::f32);
}

}  // namespace rbee::models
