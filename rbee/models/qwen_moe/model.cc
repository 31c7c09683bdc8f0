#include "rbee/models/qwen_moe/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/qwen_moe/config.h"

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
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
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
};

BlockSpec block_spec(const QwenMoeConfig& config) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.qkv_bias,
                    .output_bias = config.output_bias,
                    .qk_norm = config.qk_norm ? nn::QkNorm::head : nn::QkNorm::none,
                    .head_norm = {.dim = config.head_dim, .eps = config.norm_eps}},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

nn::MoeSpec moe_spec(const QwenMoeConfig& config) {
  return {.dim = config.dim,
          .experts = config.experts.all,
          .ffn_dim = config.expert_ffn_dim,
          .activation = config.activation,
          .route = {.chosen = config.experts.chosen, .normalise = config.normalise},
          .shared_ffn_dim = config.shared_ffn_dim,
          .shared_is_gated = true};
}

std::unique_ptr<LanguageModel> load(const QwenMoeConfig& config, const io::Checkpoint& checkpoint,
                                    const LoadOptions& options) {
  const auto block = [&](const nn::WeightScope& layer, int64_t index,
                         const nn::Rope& rope) -> std::unique_ptr<const Block> {
    if (!config.sparse[static_cast<size_t>(index)]) {
      return std::make_unique<const PreNormBlock>(layer, block_spec(config), rope);
    }
    return std::make_unique<const MoeBlock>(layer, block_spec(config), moe_spec(config), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace

std::span<const nn::TensorName> qwen_moe_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_qwen2_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options) {
  return load(read_qwen2_moe_config(ConfigReader(checkpoint)), checkpoint, options);
}

std::unique_ptr<LanguageModel> load_qwen3_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options) {
  return load(read_qwen3_moe_config(ConfigReader(checkpoint)), checkpoint, options);
}

}  // namespace rbee::models
