#include "rbee/models/modern_bert/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/decoder_embedding.h"
#include "rbee/models/encoder.h"
#include "rbee/models/modern_bert/config.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embeddings.tok_embeddings"},
    {"token_embd_norm", "model.embeddings.norm"},
    {"output_norm", "model.final_norm"},
    {"blk.*.attn_norm", "model.layers.*.attn_norm"},
    {"blk.*.attn_qkv", "model.layers.*.attn.Wqkv"},
    {"blk.*.attn_output", "model.layers.*.attn.Wo"},
    {"blk.*.ffn_norm", "model.layers.*.mlp_norm"},
    {"blk.*.ffn_up", "model.layers.*.mlp.Wi"},
    {"blk.*.ffn_down", "model.layers.*.mlp.Wo"},
};
// Heads for training and for ranking; the latter is taken apart from the layers.
constexpr std::string_view kIgnored[] = {"head.", "classifier.", "decoder.", "cls.", "dense_"};

BlockSpec block_spec(const ModernBertConfig& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = nn::Bias::optional,
                    .output_bias = nn::Bias::optional,
                    .fused = true,
                    .scores = {.window = config.windows[static_cast<size_t>(index)]}},
      .mlp = {.dim = config.dim,
              .ffn_dim = config.ffn_dim,
              .activation = config.activation,
              .bias = nn::Bias::optional,
              .fused = true},
  };
}

// x + attention(norm(x)), then x + mlp(norm(x)) with layer norms; the first layer's attention has
// none, as the embedding ends with one: Warner et al. 2024, section 2.1.
class ModernBertBlock final : public Block {
 public:
  ModernBertBlock(const nn::WeightScope& layer, const BlockSpec& spec, bool first,
                  const nn::Rope& rope)
      : attention_(layer, spec.attention, rope),
        mlp_norm_(layer / "ffn_norm", spec.norm),
        mlp_(layer, spec.mlp) {
    if (!first) attention_norm_ = nn::LayerNorm(layer / "attn_norm", spec.norm);
  }

  void operator()(nn::Residual& x, const nn::LayerStep& step) const override {
    const Tensor normed = attention_norm_ ? x.norm(*attention_norm_) : x.value();
    x.add(attention_.output(), attention_.attend(x.input(normed), step));
    x.keep_rows(step.logit_rows);
    x.add(mlp_.down(), mlp_.hidden(x.input(x.norm(mlp_norm_))));
  }

 private:
  std::optional<nn::LayerNorm> attention_norm_;
  nn::Attention attention_;
  nn::LayerNorm mlp_norm_;
  nn::Mlp mlp_;
};

}  // namespace

std::span<const nn::TensorName> modern_bert_tensor_names() {
  return kNames;
}

std::unique_ptr<EmbeddingModel> load_modern_bert(const io::Checkpoint& checkpoint,
                                                 const LoadOptions& options) {
  const ModernBertConfig config = read_modern_bert_config(ConfigReader(checkpoint));
  const int64_t positions = text_positions(config, options);
  LoadOptions load = options;
  load.output = false;
  const nn::WeightScope weights(checkpoint, weight_options(load, kNames, kIgnored));
  const nn::Rope global(config.global_rope, positions, *options.device);
  const nn::Rope local(config.local_rope, positions, *options.device);
  const auto block = [&](int64_t layer) {
    const bool windowed = config.windows[static_cast<size_t>(layer)] != 0;
    return std::make_unique<const ModernBertBlock>(weights.layer(layer), block_spec(config, layer),
                                                   layer == 0, windowed ? local : global);
  };
  DecoderEmbeddingSpec spec{.device = options.device, .max_tokens = positions};
  spec.model = std::make_unique<Decoder>(
      config, weights, DecoderSpec{.embedding_norm = true, .layer_norm = true}, block);
  if (RankHead::in(checkpoint)) {
    spec.head.emplace(
        checkpoint, options,
        RankHeadSpec{
            .dim = config.dim, .activation = config.head_activation, .norm_eps = config.norm_eps});
    spec.head_pooling = config.head_pooling;
  }
  return make_decoder_embedding(std::move(spec));
}

}  // namespace rbee::models
