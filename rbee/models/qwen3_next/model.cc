#include "rbee/models/qwen3_next/model.h"

#include <optional>
#include <variant>

#include "rbee/models/blocks.h"
#include "rbee/models/qwen3_next/config.h"
#include "rbee/nn/gated_delta_net.h"

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
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.attn_qkv", "model.layers.*.linear_attn.in_proj_qkv"},
    {"blk.*.attn_gate", "model.layers.*.linear_attn.in_proj_z"},
    {"blk.*.ssm_in", "model.layers.*.linear_attn.in_proj_qkvz"},
    {"blk.*.ssm_ba", "model.layers.*.linear_attn.in_proj_ba"},
    {"blk.*.ssm_beta", "model.layers.*.linear_attn.in_proj_b"},
    {"blk.*.ssm_alpha", "model.layers.*.linear_attn.in_proj_a"},
    {"blk.*.ssm_conv1d", "model.layers.*.linear_attn.conv1d"},
    {"blk.*.ssm_norm", "model.layers.*.linear_attn.norm"},
    {"blk.*.ssm_out", "model.layers.*.linear_attn.out_proj"},
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate"},
    {"blk.*.ffn_gate_exps", "model.layers.*.mlp.experts.#.gate_proj"},
    {"blk.*.ffn_up_exps", "model.layers.*.mlp.experts.#.up_proj"},
    {"blk.*.ffn_down_exps", "model.layers.*.mlp.experts.#.down_proj"},
    {"blk.*.ffn_gate_inp_shexp", "model.layers.*.mlp.shared_expert_gate"},
    {"blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_expert.gate_proj"},
    {"blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_expert.up_proj"},
    {"blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_expert.down_proj"},
    // Hugging Face has no weights below these, but A_log and dt_bias, and the experts' stacks.
    {"blk.*.linear_attn", "model.layers.*.linear_attn"},
    {"blk.*.experts", "model.layers.*.mlp.experts"},
};

// The layer for drafts and the vision tower are left.
constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq", "mtp.", "visual.", ".nextn."};

nn::NormOptions norm_options(const Qwen3NextConfig& config) {
  return {.dim = config.dim, .eps = config.norm_eps, .weight_offset = config.norm_weight_offset};
}

nn::AttentionSpec attention_spec(const Qwen3NextConfig& config) {
  return {.dim = config.dim,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .qkv_bias = config.attention_bias,
          .output_bias = config.attention_bias,
          .gated = true,
          .qk_norm = nn::QkNorm::head,
          .head_norm = norm_options(config)};
}

nn::MoeSpec moe_spec(const Qwen3NextConfig& config) {
  return {.dim = config.dim,
          .experts = config.experts.all,
          .ffn_dim = config.expert_ffn_dim,
          .route = {.chosen = config.experts.chosen, .normalise = config.normalise, .bias = {}},
          .shared_ffn_dim = config.shared_ffn_dim,
          .shared_is_gated = true};
}

// x + mix(norm(x)), then x + ffn(norm(x)). mix: attention with output gates or a delta net; ffn: an
// MLP or experts.
class Qwen3NextBlock final : public Block {
 public:
  Qwen3NextBlock(const nn::WeightScope& layer, const Qwen3NextConfig& config, bool recurrent,
                 const nn::Rope& rope)
      : mix_norm_(layer / "attn_norm", norm_options(config)),
        ffn_norm_(layer / "post_attention_norm", norm_options(config)) {
    if (recurrent) {
      mix_.emplace<nn::GatedDeltaNet>(layer, config.delta_net);
    } else {
      mix_.emplace<nn::Attention>(layer, attention_spec(config), rope);
    }
    if (config.experts.all > 0) {
      moe_.emplace(layer, moe_spec(config));
    } else {
      mlp_.emplace(layer, nn::MlpSpec{.dim = config.dim, .ffn_dim = config.ffn_dim});
    }
  }

  void operator()(nn::Residual& x, const nn::LayerStep& step) const override {
    if (const auto* attention = std::get_if<nn::Attention>(&mix_)) {
      x.add(attention->output(), attention->attend(x.normed_input(mix_norm_), step));
    } else {
      const auto& net = std::get<nn::GatedDeltaNet>(mix_);
      x.add(net.output(), net.attend(x.normed_input(mix_norm_), step));
    }
    x.keep_rows(step.logit_rows);
    if (moe_) {
      x.add_partial(moe_->partial(x.input(x.norm(ffn_norm_))), moe_->group());
    } else {
      x.add(mlp_->down(), mlp_->hidden(x.normed_input(ffn_norm_)));
    }
  }
  bool has_cpu_moe() const override { return moe_ && moe_->on_host(); }

 private:
  nn::RmsNorm mix_norm_;
  std::variant<std::monostate, nn::Attention, nn::GatedDeltaNet> mix_;
  nn::RmsNorm ffn_norm_;
  std::optional<nn::Mlp> mlp_;
  std::optional<nn::Moe> moe_;
};

std::vector<nn::CacheLayer> cache_layers(const Qwen3NextConfig& config) {
  std::vector<nn::CacheLayer> out;
  for (const bool recurrent : config.recurrent) {
    nn::CacheLayer layer;
    if (recurrent) {
      layer.state = config.delta_net.state();
    } else {
      layer.kv_heads = config.kv_heads;
      layer.head_dim = config.head_dim;
    }
    out.push_back(layer);
  }
  return out;
}

}  // namespace

std::span<const nn::TensorName> qwen3_next_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_qwen3_next(const io::Checkpoint& checkpoint,
                                               const LoadOptions& options) {
  const Qwen3NextConfig config = read_qwen3_next_config(ConfigReader(checkpoint, "text_config"));
  const nn::WeightScope weights(checkpoint, weight_options(options, kNames, kIgnored));
  const LayerPlaces places(config, options);
  const LayerRopes tables(config.rope, context_positions(config, options), places, *options.device);
  const auto block = [&](int64_t layer) {
    return std::make_unique<const Qwen3NextBlock>(places.layer(weights, layer), config,
                                                  config.recurrent[static_cast<size_t>(layer)],
                                                  tables.of_layer(layer));
  };
  return std::make_unique<Decoder>(config, weights,
                                   DecoderSpec{.norm_weight_offset = config.norm_weight_offset,
                                               .cache_layers = cache_layers(config)},
                                   block, places.host());
}

}  // namespace rbee::models
