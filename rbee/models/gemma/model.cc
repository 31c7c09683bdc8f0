#include "rbee/models/gemma/model.h"

#include <cmath>

#include "rbee/models/blocks.h"
#include "rbee/models/gemma/config.h"

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
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
};

BlockSpec block_spec(const GemmaConfig& config) {
  return {
      .norm = {.dim = config.dim,
               .eps = config.norm_eps,
               .weight_offset = config.norm_weight_offset},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

}  // namespace

std::span<const nn::TensorName> gemma_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_gemma(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const GemmaConfig config = read_gemma_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t, const nn::Rope& rope) {
    return std::make_unique<const PreNormBlock>(layer, block_spec(config), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block,
                      {.embedding_scale = std::sqrt(static_cast<float>(config.dim)),
                       .norm_weight_offset = config.norm_weight_offset});
}

}  // namespace rbee::models
