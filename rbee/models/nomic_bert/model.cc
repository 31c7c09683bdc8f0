#include "rbee/models/nomic_bert/model.h"

#include <array>
#include <variant>

#include "rbee/models/encoder.h"
#include "rbee/models/nomic_bert/config.h"
#include "rbee/models/nomic_bert/feed_forward.h"
#include "rbee/nn/mlp.h"
#include "rbee/nn/rope.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "emb_ln"},
    {"blk.*.attn_qkv", "encoder.layers.*.attn.Wqkv"},
    {"blk.*.attn_output", "encoder.layers.*.attn.out_proj"},
    {"blk.*.attn_output_norm", "encoder.layers.*.norm1"},
    {"blk.*.ffn_up", "encoder.layers.*.mlp.fc11"},
    {"blk.*.ffn_fc1", "encoder.layers.*.mlp.fc1"},
    {"blk.*.ffn_gate", "encoder.layers.*.mlp.fc12"},
    {"blk.*.ffn_down", "encoder.layers.*.mlp.fc2"},
    {"blk.*.ffn_gate_inp", "encoder.layers.*.mlp.router.layer"},
    {"blk.*.ffn_exps", "encoder.layers.*.mlp.experts"},
    {"blk.*.ffn_up_exps", "encoder.layers.*.mlp.experts.mlp"},
    {"blk.*.ffn_down_exps", "encoder.layers.*.mlp.experts.mlp"},
    {"blk.*.layer_output_norm", "encoder.layers.*.norm2"},
};
constexpr std::string_view kIgnored[] = {"position_ids", "pooler.", "cls.", ".rotary_emb.inv_freq"};

using FeedForward = std::variant<nn::Mlp, NomicMlp, NomicExperts>;

FeedForward make_feed_forward(const nn::WeightScope& layer, const NomicBertConfig& config,
                              int64_t index) {
  const int64_t period = config.expert_period;
  if (period > 0 && index % period == 1) return NomicExperts(layer, config);
  if (!config.gated) return NomicMlp(layer, config);
  return nn::Mlp(layer,
                 {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation});
}

// Norms come after the sums, as in BERT.
class NomicBertLayer final : public EncoderLayer {
 public:
  NomicBertLayer(const nn::WeightScope& layer, const NomicBertConfig& config, const nn::Rope& rope,
                 int64_t index)
      : heads_(config.heads), rope_(rope), mlp_(make_feed_forward(layer, config, index)) {
    const nn::NormOptions norm{.dim = config.dim, .eps = config.norm_eps};
    const auto part = [&](int64_t which) {
      return nn::Linear(layer / "attn_qkv", {.in = config.dim,
                                             .out = config.dim,
                                             .bias = config.attention_bias,
                                             .first_row = which * config.dim,
                                             .total_rows = 3 * config.dim});
    };
    query_ = part(0);
    key_ = part(1);
    value_ = part(2);
    nn::adjoin(layer, {&query_, &key_, &value_});
    output_ = nn::Linear(layer / "attn_output",
                         {.in = config.dim, .out = config.dim, .bias = config.attention_bias});
    attention_norm_ = nn::LayerNorm(layer / "attn_output_norm", norm);
    output_norm_ = nn::LayerNorm(layer / "layer_output_norm", norm);
  }

  Tensor operator()(const Tensor& x, const EncoderStep& step) const override {
    const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
    const std::vector<Tensor> qkv = linear_many(x, layers);
    const auto heads = [&](const Tensor& rows) { return contiguous(rows).split_last(heads_); };
    const Tensor attended =
        nn::text_attention(rope_(heads(qkv[0]), step.places), rope_(heads(qkv[1]), step.places),
                           heads(qkv[2]), step.runs);
    const Tensor h = attention_norm_(x + output_(attended));
    return output_norm_(h + std::visit([&](const auto& mlp) { return mlp(h); }, mlp_));
  }

 private:
  int64_t heads_;
  nn::Rope rope_;
  nn::Linear query_, key_, value_, output_;
  FeedForward mlp_;
  nn::LayerNorm attention_norm_, output_norm_;
};

}  // namespace

std::span<const nn::TensorName> nomic_bert_tensor_names() {
  return kNames;
}

std::unique_ptr<EmbeddingModel> load_nomic_bert(const io::Checkpoint& checkpoint,
                                                const LoadOptions& options) {
  const NomicBertConfig config = read_nomic_bert_config(ConfigReader(checkpoint));
  const nn::Rope rope(config.rope, text_positions(config, options), *options.device);
  const auto layer = [&, index = int64_t{0}](const nn::WeightScope& weights) mutable {
    return std::make_unique<const NomicBertLayer>(weights, config, rope, index++);
  };
  return load_encoder(checkpoint, options,
                      {.config = config,
                       .names = kNames,
                       .ignored = kIgnored,
                       .place_table = false,
                       .segments = config.segments,
                       .layer = layer});
}

}  // namespace rbee::models
