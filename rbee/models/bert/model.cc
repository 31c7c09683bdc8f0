#include "rbee/models/bert/model.h"

#include <array>

#include "rbee/models/bert/config.h"
#include "rbee/models/encoder.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"blk.*.attn_q", "encoder.layer.*.attention.self.query"},
    {"blk.*.attn_k", "encoder.layer.*.attention.self.key"},
    {"blk.*.attn_v", "encoder.layer.*.attention.self.value"},
    {"blk.*.attn_output", "encoder.layer.*.attention.output.dense"},
    {"blk.*.attn_output_norm", "encoder.layer.*.attention.output.LayerNorm"},
    {"blk.*.ffn_up", "encoder.layer.*.intermediate.dense"},
    {"blk.*.ffn_down", "encoder.layer.*.output.dense"},
    {"blk.*.layer_output_norm", "encoder.layer.*.output.LayerNorm"},
};
// The pooler is a head for training; the head of a ranker is taken apart from the layers.
constexpr std::string_view kIgnored[] = {"position_ids", "pooler.", "classifier.", "cls.",
                                         "lm_head."};

// Devlin et al. 2019, section 3: norms come after the sums.
class BertLayer final : public EncoderLayer {
 public:
  BertLayer(const nn::WeightScope& layer, const BertConfig& config)
      : heads_(config.heads), activation_(config.activation) {
    const nn::NormOptions norm{.dim = config.dim, .eps = config.norm_eps};
    const auto linear = [&](std::string_view name, int64_t in, int64_t out) {
      return nn::Linear(layer / name, {.in = in, .out = out, .bias = nn::Bias::required});
    };
    query_ = linear("attn_q", config.dim, config.dim);
    key_ = linear("attn_k", config.dim, config.dim);
    value_ = linear("attn_v", config.dim, config.dim);
    output_ = linear("attn_output", config.dim, config.dim);
    attention_norm_ = nn::LayerNorm(layer / "attn_output_norm", norm);
    up_ = linear("ffn_up", config.dim, config.ffn_dim);
    down_ = linear("ffn_down", config.ffn_dim, config.dim);
    output_norm_ = nn::LayerNorm(layer / "layer_output_norm", norm);
  }

  Tensor operator()(const Tensor& x, const EncoderStep& step) const override {
    const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
    const std::vector<Tensor> qkv = linear_many(x, layers);
    const auto heads = [&](const Tensor& rows) { return contiguous(rows).split_last(heads_); };
    const Tensor attended =
        nn::text_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), step.runs);
    const Tensor h = attention_norm_(x + output_(attended));
    return output_norm_(h + down_(unary(activation_, up_(h))));
  }

 private:
  int64_t heads_;
  UnaryOp activation_;
  nn::Linear query_, key_, value_, output_, up_, down_;
  nn::LayerNorm attention_norm_, output_norm_;
};

}  // namespace

std::span<const nn::TensorName> bert_tensor_names() {
  return kNames;
}

std::unique_ptr<EmbeddingModel> load_bert(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const BertConfig config = read_bert_config(ConfigReader(checkpoint));
  const auto layer = [&](const nn::WeightScope& weights) {
    return std::make_unique<const BertLayer>(weights, config);
  };
  return load_encoder(checkpoint, options,
                      {.config = config,
                       .names = kNames,
                       .ignored = kIgnored,
                       .first_place = config.first_position,
                       .segments = config.segments,
                       .doubles_separator = config.roberta,
                       .layer = layer});
}

}  // namespace rbee::models
