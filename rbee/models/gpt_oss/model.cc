#include "rbee/models/gpt_oss/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/gpt_oss/config.h"

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
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.router"},
    // Hugging Face has no weights below these, but "sinks" and the experts' stacks.
    {"blk.*.self_attn", "model.layers.*.self_attn"},
    {"blk.*.experts", "model.layers.*.mlp.experts"},
};

BlockSpec block_spec(const GptOssConfig& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = nn::Bias::required,
                    .output_bias = nn::Bias::required,
                    .sinks = true,
                    .scores = {.window = config.windows[static_cast<size_t>(index)], .sinks = {}}},
      .mlp = {},
      .ffn_norm = "post_attention_norm",
  };
}

nn::MoeSpec moe_spec(const GptOssConfig& config) {
  return {.dim = config.dim,
          .experts = config.experts.all,
          .ffn_dim = config.expert_ffn_dim,
          .route = {.chosen = config.experts.chosen, .normalise = true},
          .swiglu_limit = config.swiglu_limit};
}

}  // namespace

std::span<const nn::TensorName> gpt_oss_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_gpt_oss(const io::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  const GptOssConfig config = read_gpt_oss_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t index, const nn::Rope& rope) {
    return std::make_unique<const MoeBlock>(layer, block_spec(config, index), moe_spec(config),
                                            rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
