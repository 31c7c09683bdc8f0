#include "rbee/models/phi3/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/phi3/config.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.attn_qkv", "model.layers.*.self_attn.qkv_proj"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
};

BlockSpec block_spec(const Phi3Config& config) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .fused = true,
                    .scores = {.window = config.window}},
      .mlp = {.dim = config.dim,
              .ffn_dim = config.ffn_dim,
              .activation = config.activation,
              .fused = true},
  };
}

}  // namespace

std::span<const nn::TensorName> phi3_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_phi3(const io::Checkpoint& checkpoint,
                                         const LoadOptions& options) {
  const Phi3Config config = read_phi3_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t, const nn::Rope& rope) {
    return std::make_unique<const PreNormBlock>(layer, block_spec(config), rope);
  };
  return load_decoder(checkpoint, options, kNames, config, config.rope, block);
}

}  // namespace rbee::models
