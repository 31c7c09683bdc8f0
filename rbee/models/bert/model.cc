#include "rbee/models/bert/model.h"

#include <algorithm>
#include <array>

#include "rbee/models/bert/config.h"
#include "rbee/models/decoder.h"
#include "rbee/models/rank_head.h"
#include "rbee/nn/text_attention.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "embed";

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

// Devlin et al. 2019, section 3: norms stand behind the sums.
class BertLayer {
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

  // x: (tokens, dim)
  Tensor operator()(const Tensor& x, std::span<const nn::TextRun> runs) const {
    const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
    const std::vector<Tensor> qkv = linear_many(x, layers);
    const auto heads = [&](const Tensor& rows) { return contiguous(rows).split_last(heads_); };
    const Tensor attended = nn::text_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), runs);
    const Tensor h = attention_norm_(x + output_(attended));
    return output_norm_(h + down_(unary(activation_, up_(h))));
  }

 private:
  int64_t heads_;
  UnaryOp activation_;
  nn::Linear query_, key_, value_, output_, up_, down_;
  nn::LayerNorm attention_norm_, output_norm_;
};

class Bert final : public EmbeddingModel {
 public:
  Bert(const io::Checkpoint& checkpoint, const BertConfig& config, const LoadOptions& options)
      : config_(config), device_(*options.device), activations_(options.activations) {
    const nn::WeightScope weights(checkpoint, weight_options(options, kNames, kIgnored));
    tokens_ = nn::Embedding(weights / "token_embd", config.vocab_size, config.dim);
    positions_ = nn::Embedding(weights / "position_embd",
                               config.first_position + config.context_length, config.dim);
    if (config.segments > 0) {
      segments_ = nn::Embedding(weights / "token_types", config.segments, config.dim);
    }
    norm_ = nn::LayerNorm(weights / "token_embd_norm", {.dim = config.dim, .eps = config.norm_eps});
    for (int64_t i = 0; i < config.layers; ++i) layers_.emplace_back(weights.layer(i), config);
    if (RankHead::in(checkpoint)) {
      head_.emplace(checkpoint, options, RankHeadSpec{.dim = config.dim});
    }
    weights.finish();
    figures_ = weights.figures();
    const int64_t wanted = options.context;
    check(wanted >= 0 && wanted <= config.context_length, "context", wanted,
          " is above the model's ", config.context_length, " positions");
    max_tokens_ = wanted > 0 ? wanted : config.context_length;
  }

  const ModelConfig& config() const override { return config_; }
  int64_t max_tokens() const override { return max_tokens_; }
  Tensor embed(const TextBatch& texts, Pooling pooling) override {
    return pool(states(texts), texts.lengths, pooling);
  }
  bool ranks() const override { return head_.has_value(); }
  Tensor rank(const TextBatch& pairs) override {
    check(ranks(), "rank", "the model has no head that ranks");
    return (*head_)(cast(pool(states(pairs), pairs.lengths, Pooling::cls), activations_));
  }
  bool doubles_separator() const override { return config_.roberta; }
  DType activations() const override { return activations_; }
  int64_t weight_bytes() const override {
    return figures_.resident_bytes + (head_ ? head_->figures().resident_bytes : 0);
  }
  int64_t parameters() const override {
    return figures_.parameters + (head_ ? head_->figures().parameters : 0);
  }
  std::string quantization() const override {
    return std::string(rbee::name(figures_.most_common()));
  }

 private:
  void check_batch(const TextBatch& texts) const {
    int64_t tokens = 0;
    for (const int64_t length : texts.lengths) {
      check(length >= 1 && length <= max_tokens_, kOp, "a text has ", length,
            " tokens, wanted from 1 to ", max_tokens_);
      tokens += length;
    }
    check(tokens > 0 && tokens == std::ssize(texts.ids) && tokens == std::ssize(texts.segments),
          kOp, texts.ids.size(), " ids and ", texts.segments.size(), " segments for texts of ",
          tokens, " tokens");
  }

  Tensor states(const TextBatch& texts) const {
    check_batch(texts);
    const auto tokens = static_cast<int64_t>(texts.ids.size());
    std::vector<int32_t> places;
    places.reserve(texts.ids.size());
    for (const int64_t length : texts.lengths) {
      for (int64_t i = 0; i < length; ++i) {
        places.push_back(static_cast<int32_t>(config_.first_position + i));
      }
    }
    const auto on_device = [&](const std::vector<int32_t>& values) {
      return from_host<int32_t>(values, {tokens}, device_);
    };
    Tensor x = tokens_(on_device(texts.ids)) + positions_(on_device(places));
    if (config_.segments > 0) x = x + segments_(on_device(segment_rows(texts)));
    x = norm_(x);
    const std::vector<nn::TextRun> runs = nn::text_runs(texts.lengths);
    for (const BertLayer& layer : layers_) x = layer(x, runs);
    return x;
  }

  // RoBERTa tells no texts apart.
  std::vector<int32_t> segment_rows(const TextBatch& texts) const {
    if (config_.segments > 1) return texts.segments;
    return std::vector<int32_t>(texts.segments.size(), 0);
  }

  BertConfig config_;
  Device& device_;
  DType activations_;
  int64_t max_tokens_ = 0;
  nn::Embedding tokens_, positions_, segments_;
  nn::LayerNorm norm_;
  std::vector<BertLayer> layers_;
  std::optional<RankHead> head_;
  nn::WeightFigures figures_;
};

}  // namespace

std::unique_ptr<EmbeddingModel> load_bert(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  return std::make_unique<Bert>(checkpoint, read_bert_config(ConfigReader(checkpoint)), options);
}

}  // namespace rbee::models
