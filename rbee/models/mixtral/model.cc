#include "rbee/models/mixtral/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/mixtral/config.h"

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
    {"blk.*.ffn_gate_inp", "model.layers.*.block_sparse_moe.gate"},
    {"blk.*.ffn_gate_exps", "model.layers.*.block_sparse_moe.experts.#.w1"},
    {"blk.*.ffn_down_exps", "model.layers.*.block_sparse_moe.experts.#.w2"},
    {"blk.*.ffn_up_exps", "model.layers.*.block_sparse_moe.experts.#.w3"},
};

BlockSpec block_spec(const MixtralConfig& config) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .scores = {.window = config.window}},
      .mlp = {},
  };
}

nn::MoeSpec moe_spec(const MixtralConfig& config) {
  return {.dim = config.dim,
          .experts = config.experts.all,
          .ffn_dim = config.ffn_dim,
          .activation = config.activation,
          .route = {.chosen = config.experts.chosen, .normalise = true}};
}

}  // namespace

std::span<const nn::TensorName> mixtral_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_mixtral(const io::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  const MixtralConfig config = read_mixtral_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t, const nn::Rope& rope) {
    return std::make_unique<const MoeBlock>(layer, block_spec(config), moe_spec(config), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
