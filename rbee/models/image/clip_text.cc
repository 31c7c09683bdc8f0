#include "rbee/models/image/clip_text.h"

#include <algorithm>
#include <array>

#include "rbee/models/image/layers.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/embedding.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "CLIP text encoder";

UnaryOp read_activation(const io::JsonConfig& config) {
  const std::string name = config.text_or("hidden_act", "quick_gelu");
  if (name == "quick_gelu") return UnaryOp::quick_gelu;
  if (name == "gelu") return UnaryOp::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return UnaryOp::gelu;
  fail(Code::unsupported, config.describe("hidden_act"), "\"", name,
       "\" is not implemented; known are quick_gelu, gelu and gelu_new");
}

// The end of a prompt: its first `eos`, or its largest id if there is none.
int64_t end_of(std::span<const int32_t> prompt, std::optional<int32_t> eos) {
  const auto found = eos ? std::ranges::find(prompt, *eos) : std::ranges::max_element(prompt);
  return found == prompt.end() ? 0 : found - prompt.begin();
}

}  // namespace

ClipTextConfig ClipTextConfig::read(const io::JsonConfig& config) {
  ClipTextConfig out;
  out.vocab_size = config.integer_or("vocab_size", 49408);
  out.width = config.integer_or("hidden_size", 512);
  out.layers = config.integer_or("num_hidden_layers", 12, {1, 1024});
  out.heads = config.integer_or("num_attention_heads", 8);
  check(out.width % out.heads == 0, config.describe("num_attention_heads"), out.heads,
        " do not divide the hidden_size of ", out.width);
  out.ffn_width = config.integer_or("intermediate_size", 2048);
  out.positions = config.integer_or("max_position_embeddings", 77);
  out.norm_eps = static_cast<float>(config.number_or("layer_norm_eps", 1e-5, io::kZeroToOne));
  out.activation = read_activation(config);
  out.projection = config.integer_or("projection_dim", 512);
  const int64_t eos = config.integer_or("eos_token_id", 49407, {0, out.vocab_size - 1});
  if (eos != 2) out.eos = static_cast<int32_t>(eos);
  return out;
}

ClipTextLayer::ClipTextLayer(const nn::WeightScope& scope, const ClipTextConfig& config)
    : heads_(config.heads), activation_(config.activation) {
  const int64_t width = config.width;
  const nn::NormOptions norm{.dim = width, .eps = config.norm_eps};
  const nn::LinearShape square{.in = width, .out = width, .bias = nn::Bias::required};
  attention_norm_ = nn::LayerNorm(scope / "layer_norm1", norm);
  mlp_norm_ = nn::LayerNorm(scope / "layer_norm2", norm);
  const nn::WeightScope attention = scope / "self_attn";
  query_ = nn::Linear(attention / "q_proj", square);
  key_ = nn::Linear(attention / "k_proj", square);
  value_ = nn::Linear(attention / "v_proj", square);
  nn::adjoin(scope, {&query_, &key_, &value_});
  output_ = nn::Linear(attention / "out_proj", square);
  const int64_t ffn = config.ffn_width;
  up_ = nn::Linear(scope / "mlp" / "fc1", {.in = width, .out = ffn, .bias = nn::Bias::required});
  down_ = nn::Linear(scope / "mlp" / "fc2", {.in = ffn, .out = width, .bias = nn::Bias::required});
}

Tensor ClipTextLayer::attend(const Tensor& x) const {
  const auto [batch, tokens, width] = x.dims<3>();
  const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
  const std::vector<Tensor> qkv = linear_many(x.reshape({batch * tokens, width}), layers);
  const auto heads = [&](const Tensor& rows) {
    return split_heads(split_rows(rows, batch), heads_);
  };
  const Tensor y = attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {.causal = true});
  return contiguous(y.permute({0, 2, 1, 3})).reshape({batch, tokens, width});
}

Tensor ClipTextLayer::operator()(const Tensor& x) const {
  const Tensor h = x + output_.over_last(attend(attention_norm_(x)));
  return h + down_.over_last(unary(activation_, up_.over_last(mlp_norm_(h))));
}

ClipTextEncoder::ClipTextEncoder(const nn::WeightScope& scope, const ClipTextConfig& config,
                                 const ClipTextUse& use)
    : config_(config), use_(use), activations_(scope.activations()) {
  const char* kTokens = "embeddings.token_embedding";
  const bool prefixed = !(scope / kTokens).has("weight");
  const nn::WeightScope model = prefixed ? scope / "text_model" : scope;
  tokens_ = (model / kTokens).table("weight", {config.vocab_size, config.width});
  positions_ =
      (model / "embeddings.position_embedding").array("weight", {config.positions, config.width});
  for (int64_t i = 0; i < config.layers; ++i) {
    layers_.emplace_back(model / "encoder.layers" / cat(i), config);
  }
  final_norm_ =
      nn::LayerNorm(model / "final_layer_norm", {.dim = config.width, .eps = config.norm_eps});
  if (use.pooled == ClipTextUse::Pooled::projection) {
    projection_ =
        nn::Linear(scope / "text_projection", {.in = config.width, .out = config.projection});
  }
}

int64_t ClipTextEncoder::pooled_width() const {
  if (use_.pooled == ClipTextUse::Pooled::none) return 0;
  return use_.pooled == ClipTextUse::Pooled::norm ? config_.width : config_.projection;
}

void ClipTextEncoder::check_input(const TextInput& input) const {
  const auto count = static_cast<int64_t>(input.ids.size());
  check(input.batch >= 1 && count > 0 && count % input.batch == 0, kOp, count,
        " ids are no batch of ", input.batch, " prompts");
  check(count / input.batch <= config_.positions, kOp, "a prompt has ", count / input.batch,
        " tokens, at most ", config_.positions, " fit");
  for (const int32_t id : input.ids) {
    check(id >= 0 && id < config_.vocab_size, kOp, "id ", id, " is not in the vocabulary of ",
          config_.vocab_size);
  }
  check(input.clip_skip >= 0 && input.clip_skip <= config_.layers, kOp, "clip_skip is ",
        input.clip_skip, ", wanted 0 to ", config_.layers, ", the encoder's layers");
  for (const TokenVector& vector : input.vectors) {
    check(vector.at >= 0 && vector.at < count, kOp, "a vector replaces token ", vector.at, " of ",
          count);
    check(static_cast<int64_t>(vector.row.size()) == config_.width, kOp, "a token's vector has ",
          vector.row.size(), " values, the encoder is ", config_.width, " wide");
  }
}

Tensor ClipTextEncoder::embed(const TextInput& input) const {
  const auto count = static_cast<int64_t>(input.ids.size());
  Device& device = tokens_.device();
  const Tensor ids = from_host<int32_t>(input.ids, {count}, device);
  const Tensor x = embedding(ids, tokens_, 1.0f, activations_);
  for (const TokenVector& vector : input.vectors) {
    Tensor row = x.slice(Axis{0}, vector.at, 1);
    copy_(row, cast(from_host<float>(vector.row, {1, config_.width}, device), activations_));
  }
  const int64_t tokens = count / input.batch;
  return x.reshape({input.batch, tokens, config_.width}) + positions_.slice(Axis{0}, 0, tokens);
}

// states: (batch, tokens, width), the last layer's, after the final norm
Tensor ClipTextEncoder::pool(const TextInput& input, const Tensor& states) const {
  const auto tokens = states.dim(1);
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < input.batch; ++i) {
    const auto prompt =
        input.ids.subspan(static_cast<size_t>(i * tokens), static_cast<size_t>(tokens));
    rows.push_back(static_cast<int32_t>(i * tokens + end_of(prompt, config_.eos)));
  }
  const Tensor at = from_host<int32_t>(rows, {input.batch}, states.device());
  const Tensor ends =
      embedding(at, states.reshape({input.batch * tokens, config_.width}), 1.0f, activations_);
  const bool projected = use_.pooled == ClipTextUse::Pooled::projection;
  return cast(projected ? projection_(ends) : ends, DType::f32);
}

TextEncoding ClipTextEncoder::operator()(const TextInput& input) const {
  check_input(input);
  const int64_t skip = input.clip_skip == 0 ? use_.clip_skip : input.clip_skip;
  const int64_t wanted = std::max<int64_t>(config_.layers - skip + 1, 0);
  const bool pools = use_.pooled != ClipTextUse::Pooled::none;
  Tensor x = embed(input);
  Tensor states = x;
  for (int64_t i = 0; i < (pools ? config_.layers : wanted); ++i) {
    x = layers_[static_cast<size_t>(i)](x);
    if (i + 1 == wanted) states = x;
  }
  TextEncoding out;
  out.hidden = cast(use_.final_norm ? final_norm_(states) : states, DType::f32);
  if (pools) out.pooled = pool(input, final_norm_(x));
  return out;
}

}  // namespace rbee::models
