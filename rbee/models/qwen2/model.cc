#include "rbee/models/qwen2/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/qwen2/config.h"

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

BlockSpec block_spec(const Qwen2Config& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = nn::Bias::required,
                    .scores = {.window = config.windows[static_cast<size_t>(index)]}},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

}  // namespace

std::span<const nn::TensorName> qwen2_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_qwen2(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const Qwen2Config config = read_qwen2_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t index, const nn::Rope& rope) {
    return std::make_unique<const PreNormBlock>(layer, block_spec(config, index), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
