#include "rbee/models/image/unet_blocks.h"

#include <array>

#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/fused_linear.h"

namespace rbee::models {
namespace {

constexpr float kTransformerNormEps = 1e-6f;  // of the group norm; the class has no setting for it
constexpr float kLayerNormEps = 1e-5f;

Tensor flat(const Tensor& x) {
  return x.reshape({x.dim(0) * x.dim(1), x.dim(2)});
}

TransformerSpec transformer_spec(const UnetLevel& level, int64_t depth, const UnetCommon& common) {
  return {.width = level.channels,
          .heads = level.heads,
          .context_width = level.context_width,
          .depth = depth,
          .groups = common.groups};
}

ResnetSpec resnet_spec(int64_t in, int64_t out, const UnetCommon& common) {
  return {.in = in,
          .out = out,
          .time_width = common.time_width,
          .groups = common.groups,
          .eps = common.eps};
}

}  // namespace

TransformerBlock::TransformerBlock(const nn::WeightScope& scope, const TransformerSpec& spec)
    : heads_(spec.heads) {
  const int64_t width = spec.width;
  const nn::NormOptions norm{.dim = width, .eps = kLayerNormEps};
  norm1_ = nn::LayerNorm(scope / "norm1", norm);
  norm2_ = nn::LayerNorm(scope / "norm2", norm);
  norm3_ = nn::LayerNorm(scope / "norm3", norm);
  const nn::LinearShape square{.in = width, .out = width};
  const nn::LinearShape with_bias{.in = width, .out = width, .bias = nn::Bias::required};
  const nn::LinearShape from_context{.in = spec.context_width, .out = width};
  self_query_ = nn::Linear(scope / "attn1.to_q", square);
  self_key_ = nn::Linear(scope / "attn1.to_k", square);
  self_value_ = nn::Linear(scope / "attn1.to_v", square);
  nn::adjoin(scope, {&self_query_, &self_key_, &self_value_});
  self_output_ = nn::Linear(scope / "attn1.to_out.0", with_bias);
  query_ = nn::Linear(scope / "attn2.to_q", square);
  key_ = nn::Linear(scope / "attn2.to_k", from_context);
  value_ = nn::Linear(scope / "attn2.to_v", from_context);
  output_ = nn::Linear(scope / "attn2.to_out.0", with_bias);
  // Rows of the values first, then of their gates.
  nn::LinearShape half{
      .in = width, .out = 4 * width, .bias = nn::Bias::required, .total_rows = 8 * width};
  up_ = nn::Linear(scope / "ff.net.0.proj", half);
  half.first_row = 4 * width;
  gate_ = nn::Linear(scope / "ff.net.0.proj", half);
  nn::adjoin(scope, {&gate_, &up_});
  down_ =
      nn::Linear(scope / "ff.net.2", {.in = 4 * width, .out = width, .bias = nn::Bias::required});
}

KeysValues TransformerBlock::prepare(const Tensor& context) const {
  return {split_heads(key_.over_last(context), heads_),
          split_heads(value_.over_last(context), heads_)};
}

Tensor TransformerBlock::attend_self(const Tensor& x) const {
  const std::array layers{&self_query_.weights(), &self_key_.weights(), &self_value_.weights()};
  const std::vector<Tensor> qkv = linear_many(flat(x), layers);
  const auto heads = [&](const Tensor& rows) {
    return split_heads(split_rows(rows, x.dim(0)), heads_);
  };
  return join_heads(attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}));
}

// GEGLU (Shazeer 2020)
Tensor TransformerBlock::feed_forward(const Tensor& x) const {
  return gated_linear(GateOp::gelu_erf, flat(x), gate_.weights(), up_.weights());
}

Tensor TransformerBlock::operator()(const Tensor& x, const KeysValues& prompt) const {
  Tensor h = self_output_.onto(x, attend_self(norm1_(x)));
  const Tensor query = split_heads(query_.over_last(norm2_(h)), heads_);
  h = output_.onto(h, join_heads(attention(query, prompt.keys, prompt.values, {})));
  return down_.onto(h, feed_forward(norm3_(h)));
}

SpatialTransformer::SpatialTransformer(const nn::WeightScope& scope, const TransformerSpec& spec) {
  norm_ = nn::GroupNorm(
      scope / "norm", {.channels = spec.width, .groups = spec.groups, .eps = kTransformerNormEps});
  const nn::LinearShape square{.in = spec.width, .out = spec.width, .bias = nn::Bias::required};
  in_ = nn::Linear(scope / "proj_in", square);
  for (int64_t i = 0; i < spec.depth; ++i) {
    blocks_.emplace_back(scope / "transformer_blocks" / cat(i), spec);
  }
  out_ = nn::Linear(scope / "proj_out", square);
}

void SpatialTransformer::prepare(const Tensor& context, std::vector<KeysValues>& prompt) const {
  for (const TransformerBlock& block : blocks_) prompt.push_back(block.prepare(context));
}

Tensor SpatialTransformer::operator()(const Tensor& x, std::span<const KeysValues>& prompt) const {
  const auto [batch, height, width, channels] = x.dims<4>();
  Tensor h = in_.over_last(norm_(x).reshape({batch, height * width, channels}));
  for (const TransformerBlock& block : blocks_) {
    h = block(h, prompt.front());
    prompt = prompt.subspan(1);
  }
  return out_.onto(x, h);
}

UnetLayers::UnetLayers(const nn::WeightScope& scope, const UnetLevel& level, const Widths& widths,
                       const UnetCommon& common) {
  for (size_t i = 0; i < widths.in.size(); ++i) {
    resnets_.emplace_back(scope / "resnets" / cat(i),
                          resnet_spec(widths.in[i], widths.out, common));
    if (!level.attention) continue;
    transformers_.emplace_back(scope / "attentions" / cat(i),
                               transformer_spec(level, level.depths[i], common));
  }
}

void UnetLayers::add_time(std::vector<const LinearWeights*>& layers) const {
  for (const PictureResnet& resnet : resnets_) layers.push_back(&resnet.time_weights());
}

void UnetLayers::prepare(const Tensor& context, std::vector<KeysValues>& prompt) const {
  for (const SpatialTransformer& transformer : transformers_) transformer.prepare(context, prompt);
}

Tensor UnetLayers::operator()(size_t index, const Tensor& x, UnetPass& pass) const {
  const Tensor h = resnets_[index](x, pass.time[pass.resnet++], pass.circular);
  return transformers_.empty() ? h : transformers_[index](h, pass.prompt);
}

UnetMiddle::UnetMiddle(const nn::WeightScope& scope, const UnetConfig& config,
                       const UnetCommon& common) {
  if (!config.has_middle) return;
  const UnetLevel& level = config.down.back();
  const ResnetSpec spec = resnet_spec(level.channels, level.channels, common);
  resnets_.emplace_back(scope / "resnets.0", spec);
  if (config.middle_depth == 0) return;
  transformers_.emplace_back(scope / "attentions.0",
                             transformer_spec(level, config.middle_depth, common));
  resnets_.emplace_back(scope / "resnets.1", spec);
}

void UnetMiddle::add_time(std::vector<const LinearWeights*>& layers) const {
  for (const PictureResnet& resnet : resnets_) layers.push_back(&resnet.time_weights());
}

void UnetMiddle::prepare(const Tensor& context, std::vector<KeysValues>& prompt) const {
  for (const SpatialTransformer& transformer : transformers_) transformer.prepare(context, prompt);
}

Tensor UnetMiddle::operator()(const Tensor& x, UnetPass& pass) const {
  Tensor h = x;
  for (size_t i = 0; i < resnets_.size(); ++i) {
    if (i == 1) h = transformers_.front()(h, pass.prompt);
    h = resnets_[i](h, pass.time[pass.resnet++], pass.circular);
  }
  return h;
}

}  // namespace rbee::models
