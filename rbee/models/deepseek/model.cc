#include "rbee/models/deepseek/model.h"

#include <optional>

#include "rbee/models/decoder.h"
#include "rbee/models/deepseek/config.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"blk.*.attn_q_a", "model.layers.*.self_attn.q_a_proj"},
    {"blk.*.attn_q_a_norm", "model.layers.*.self_attn.q_a_layernorm"},
    {"blk.*.attn_q_b", "model.layers.*.self_attn.q_b_proj"},
    {"blk.*.attn_kv_a_mqa", "model.layers.*.self_attn.kv_a_proj_with_mqa"},
    {"blk.*.attn_kv_a_norm", "model.layers.*.self_attn.kv_a_layernorm"},
    {"blk.*.attn_kv_b", "model.layers.*.self_attn.kv_b_proj"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate"},
    {"blk.*.exp_probs_b", "model.layers.*.mlp.gate"},
    {"blk.*.ffn_gate_exps", "model.layers.*.mlp.experts.#.gate_proj"},
    {"blk.*.ffn_up_exps", "model.layers.*.mlp.experts.#.up_proj"},
    {"blk.*.ffn_down_exps", "model.layers.*.mlp.experts.#.down_proj"},
    {"blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_experts.gate_proj"},
    {"blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_experts.up_proj"},
    {"blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_experts.down_proj"},
};

// x + attention(norm(x)), then x + experts(norm(x)), or an MLP in the first layers.
class DeepseekBlock final : public Block {
 public:
  DeepseekBlock(const nn::WeightScope& layer, const DeepseekConfig& config, int64_t index,
                const nn::Rope& rope)
      : attention_norm_(layer / "attn_norm", {.dim = config.dim, .eps = config.norm_eps}),
        attention_(layer, config.attention, rope),
        ffn_norm_(layer / "ffn_norm", {.dim = config.dim, .eps = config.norm_eps}) {
    if (index < config.dense_layers) {
      mlp_.emplace(layer, nn::MlpSpec{.dim = config.dim,
                                      .ffn_dim = config.ffn_dim,
                                      .activation = config.activation});
    } else {
      moe_.emplace(layer, config.moe);
    }
  }

  void operator()(nn::Residual& x, const nn::LayerStep& step) const override {
    x.add(attention_.output(), attention_.attend(x.norm(attention_norm_), step));
    x.keep_rows(step.logit_rows);
    if (moe_) {
      x.add_partial(moe_->partial(x.input(x.norm(ffn_norm_))), moe_->group());
    } else {
      x.add(mlp_->down(), mlp_->hidden(x.normed_input(ffn_norm_)));
    }
  }
  bool has_cpu_moe() const override { return moe_ && moe_->on_host(); }

 private:
  nn::RmsNorm attention_norm_;
  nn::LatentAttention attention_;
  nn::RmsNorm ffn_norm_;
  std::optional<nn::Mlp> mlp_;
  std::optional<nn::Moe> moe_;
};

}  // namespace

std::span<const nn::TensorName> deepseek_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_deepseek(const io::Checkpoint& checkpoint,
                                             const LoadOptions& options) {
  const DeepseekConfig config = read_deepseek_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t index, const nn::Rope& rope) {
    return std::make_unique<const DeepseekBlock>(layer, config, index, rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
