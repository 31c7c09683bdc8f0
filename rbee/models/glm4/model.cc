#include "rbee/models/glm4/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/glm4/config.h"

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
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.post_attention_norm", "model.layers.*.post_self_attn_layernorm"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.post_ffw_norm", "model.layers.*.post_mlp_layernorm"},
};

BlockSpec block_spec(const Glm4Config& config) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.qkv_bias,
                    .plain_rows = true},
      .mlp = {.dim = config.dim,
              .ffn_dim = config.ffn_dim,
              .activation = config.activation,
              .fused = true},
  };
}

}  // namespace

std::span<const nn::TensorName> glm4_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_glm4(const io::Checkpoint& checkpoint,
                                         const LoadOptions& options) {
  const Glm4Config config = read_glm4_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t, const nn::Rope& rope) {
    return std::make_unique<const SandwichNormBlock>(layer, block_spec(config), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
