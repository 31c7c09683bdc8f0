#include "rbee/models/stablelm/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/stablelm/config.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    {"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_layernorm.norms.#"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_layernorm.norms.#"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
};

BlockSpec block_spec(const StableLmConfig& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.qkv_bias,
                    .output_bias = config.output_bias,
                    .plain_rows = true,
                    .qk_norm = config.qk_norm ? nn::QkNorm::each_head : nn::QkNorm::none,
                    .head_norm = {.eps = config.norm_eps},
                    .rotated = config.rotated[static_cast<size_t>(index)],
                    .scores = {.window = config.windows[static_cast<size_t>(index)]}},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

// x + attention(norm(x)), then x + mlp(norm(x)); or, in parallel, x + attention(y) + mlp(y) with
// y = norm(x). Norms are layer norms.
class StableLmBlock final : public Block {
 public:
  StableLmBlock(const nn::WeightScope& layer, const StableLmConfig& config, int64_t index,
                const nn::Rope& rope)
      : StableLmBlock(layer, block_spec(config, index), config.parallel, rope) {}

  void operator()(nn::Residual& x, const nn::LayerStep& step) const override {
    const nn::LayerInput normed = x.input(x.norm(attention_norm_));
    x.add(attention_.output(), attention_.attend(normed, step));
    if (parallel_) {
      x.add(mlp_(normed));
      x.keep_rows(step.logit_rows);
      return;
    }
    x.keep_rows(step.logit_rows);
    x.add(mlp_.down(), mlp_.hidden(x.input(x.norm(mlp_norm_))));
  }

 private:
  StableLmBlock(const nn::WeightScope& layer, const BlockSpec& spec, bool parallel,
                const nn::Rope& rope)
      : parallel_(parallel),
        attention_norm_(layer / "attn_norm", spec.norm),
        attention_(layer, spec.attention, rope),
        mlp_(layer, spec.mlp) {
    if (!parallel) mlp_norm_ = nn::LayerNorm(layer / "ffn_norm", spec.norm);
  }

  bool parallel_;
  nn::LayerNorm attention_norm_;
  nn::Attention attention_;
  nn::LayerNorm mlp_norm_;  // not in parallel
  nn::Mlp mlp_;
};

}  // namespace

std::span<const nn::TensorName> stablelm_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_stablelm(const io::Checkpoint& checkpoint,
                                             const LoadOptions& options) {
  const StableLmConfig config = read_stablelm_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t index, const nn::Rope& rope) {
    return std::make_unique<const StableLmBlock>(layer, config, index, rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block,
                      {.layer_norm = true, .logit_scale = config.logit_scale});
}

}  // namespace rbee::models
