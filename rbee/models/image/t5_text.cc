#include "rbee/models/image/t5_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/models/image/layers.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/embedding.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "T5 text encoder";

// transformers writes "gated-gelu" for the tanh form.
GateOp read_activation(const io::JsonConfig& config) {
  const std::string name = config.text_or("feed_forward_proj", "relu");
  if (name == "gated-gelu" || name == "gated-gelu_new") return GateOp::gelu;
  if (name == "gated-silu") return GateOp::silu;
  if (name == "gated-relu") return GateOp::relu;
  fail(Code::unsupported, config.describe("feed_forward_proj"), "\"", name,
       "\" is not implemented; known are gated-gelu, gated-silu and gated-relu");
}

// Files of only the encoder may have either name, or both.
nn::WeightScope token_table(const nn::WeightScope& scope) {
  const nn::WeightScope shared = scope / "shared";
  return shared.has("weight") ? shared : scope / "encoder.embed_tokens";
}

}  // namespace

T5TextConfig T5TextConfig::read(const io::JsonConfig& config) {
  T5TextConfig out;
  out.vocab_size = config.integer_or("vocab_size", 32128);
  out.width = config.integer_or("d_model", 512);
  out.layers = config.integer_or("num_layers", 6, {1, 1024});
  out.heads = config.integer_or("num_heads", 8);
  out.head_dim = config.integer_or("d_kv", 64);
  out.ffn_width = config.integer_or("d_ff", 2048);
  out.buckets = config.integer_or("relative_attention_num_buckets", 32, {4, 1 << 16});
  out.max_distance = config.integer_or("relative_attention_max_distance", 128);
  check(out.buckets % 4 == 0 && out.max_distance > out.buckets / 4,
        config.describe("relative_attention_num_buckets"), out.buckets,
        " are no multiple of 4 whose quarter is below the max_distance of ", out.max_distance);
  out.norm_eps = static_cast<float>(config.number_or("layer_norm_epsilon", 1e-6, io::kZeroToOne));
  out.activation = read_activation(config);
  return out;
}

int32_t t5_bucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t half = buckets / 2, exact = half / 2;
  const int64_t first = distance > 0 ? half : 0, size = std::abs(distance);
  if (size < exact) return static_cast<int32_t>(first + size);
  // In float, as in training: rounding moves the borders.
  const float share =
      std::log(static_cast<float>(size) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto far = exact + static_cast<int64_t>(share * static_cast<float>(half - exact));
  return static_cast<int32_t>(first + std::min(far, half - 1));
}

T5TextLayer::T5TextLayer(const nn::WeightScope& scope, const T5TextConfig& config)
    : heads_(config.heads), head_dim_(config.head_dim), activation_(config.activation) {
  const int64_t width = config.width, inner = config.heads * config.head_dim;
  const nn::NormOptions norm{.dim = width, .eps = config.norm_eps};
  attention_norm_ = nn::RmsNorm(scope / "layer.0.layer_norm", norm);
  mlp_norm_ = nn::RmsNorm(scope / "layer.1.layer_norm", norm);
  const nn::WeightScope attention = scope / "layer.0.SelfAttention";
  query_ = nn::Linear(attention / "q", {.in = width, .out = inner});
  key_ = nn::Linear(attention / "k", {.in = width, .out = inner});
  value_ = nn::Linear(attention / "v", {.in = width, .out = inner});
  output_ = nn::Linear(attention / "o", {.in = inner, .out = width});
  const nn::WeightScope mlp = scope / "layer.1.DenseReluDense";
  gate_ = nn::Linear(mlp / "wi_0", {.in = width, .out = config.ffn_width});
  up_ = nn::Linear(mlp / "wi_1", {.in = width, .out = config.ffn_width});
  down_ = nn::Linear(mlp / "wo", {.in = config.ffn_width, .out = width});
}

Tensor T5TextLayer::attend(const Tensor& x, const Tensor& bias) const {
  const auto [batch, tokens, width] = x.dims<3>();
  const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
  const Tensor rows = x.reshape({batch * tokens, width});
  const std::vector<Tensor> qkv = linear_many(attention_norm_.before_linear(rows), layers);
  const Shape inner{batch, tokens, heads_ * head_dim_};
  const auto heads = [&](const Tensor& y) { return split_heads(y.reshape(inner), heads_); };
  const Tensor y =
      attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {.scale = 1, .mask = bias});
  return output_.over_last(join_heads(y));
}

Tensor T5TextLayer::operator()(const Tensor& x, const Tensor& bias) const {
  const Tensor h = x + attend(x, bias);
  const auto [batch, tokens, width] = h.dims<3>();
  const Tensor rows = h.reshape({batch * tokens, width});
  const Tensor inner =
      gated_linear(activation_, mlp_norm_.before_linear(rows), gate_.weights(), up_.weights());
  return h + down_(inner).reshape(h.shape());
}

T5TextEncoder::T5TextEncoder(const nn::WeightScope& scope, const T5TextConfig& config,
                             int64_t max_tokens)
    : config_(config), max_tokens_(max_tokens), activations_(scope.activations()) {
  tokens_ = token_table(scope).table("weight", {config.vocab_size, config.width});
  const nn::WeightScope blocks = scope / "encoder.block";
  const nn::WeightScope first = blocks / "0.layer.0.SelfAttention.relative_attention_bias";
  distances_ = cast(first.array("weight", {config.buckets, config.heads}), DType::f32);
  for (int64_t i = 0; i < config.layers; ++i) layers_.emplace_back(blocks / cat(i), config);
  final_norm_ = nn::RmsNorm(scope / "encoder.final_layer_norm",
                            {.dim = config.width, .eps = config.norm_eps});
}

void T5TextEncoder::check_input(const TextInput& input) const {
  const auto count = static_cast<int64_t>(input.ids.size());
  check(input.batch >= 1 && count > 0 && count % input.batch == 0, kOp, count,
        " ids are no batch of ", input.batch, " prompts");
  check(count / input.batch <= max_tokens_, kOp, "a prompt has ", count / input.batch,
        " tokens, at most ", max_tokens_, " fit");
  for (const int32_t id : input.ids) {
    check(id >= 0 && id < config_.vocab_size, kOp, "id ", id, " is not in the vocabulary of ",
          config_.vocab_size);
  }
  check(input.vectors.empty(), kOp, "vectors in the place of tokens are not for this encoder");
}

// (1, heads, tokens, tokens): each head's addition to a query's score of a key
Tensor T5TextEncoder::position_bias(int64_t tokens) const {
  std::vector<int32_t> buckets;
  buckets.reserve(static_cast<size_t>(tokens * tokens));
  for (int64_t query = 0; query < tokens; ++query) {
    for (int64_t key = 0; key < tokens; ++key) {
      buckets.push_back(t5_bucket(key - query, config_.buckets, config_.max_distance));
    }
  }
  const Tensor ids = from_host<int32_t>(buckets, {tokens * tokens}, tokens_.device());
  const Tensor rows = embedding(ids, distances_).reshape({1, tokens, tokens, config_.heads});
  return contiguous(rows.permute({0, 3, 1, 2}));
}

TextEncoding T5TextEncoder::operator()(const TextInput& input) const {
  check_input(input);
  const auto count = static_cast<int64_t>(input.ids.size());
  const int64_t tokens = count / input.batch;
  const Tensor ids = from_host<int32_t>(input.ids, {count}, tokens_.device());
  Tensor x = embedding(ids, tokens_, 1.0f, activations_);
  x = x.reshape({input.batch, tokens, config_.width});
  const Tensor bias = position_bias(tokens);
  for (const T5TextLayer& layer : layers_) x = layer(x, bias);
  return {.hidden = cast(final_norm_(x), DType::f32), .pooled = {}};
}

}  // namespace rbee::models
