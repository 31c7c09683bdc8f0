#include "rbee/models/olmo2/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/olmo2/config.h"

namespace rbee::models {
namespace {

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    {"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm"},
};

BlockSpec block_spec(const Olmo2Config& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.attention_bias,
                    .output_bias = config.attention_bias,
                    .qk_norm = config.qk_norm,
                    .head_norm = {.eps = config.norm_eps},
                    .rotated = config.rotated[static_cast<size_t>(index)],
                    .scores = {.window = config.windows[static_cast<size_t>(index)]}},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

}  // namespace

std::span<const nn::TensorName> olmo2_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_olmo2(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  Olmo2Config config = read_olmo2_config(ConfigReader(checkpoint));
  const nn::WeightScope weights(checkpoint, weight_options(options, kNames));
  add_rope_tensors(config.rope, weights);
  if (config.architecture == "exaone4") config.local_rope = config.rope;
  const int64_t positions = context_positions(config, options);
  const LayerPlaces places(config, options);
  const LayerRopes global(config.rope, positions, places, *options.device);
  const LayerRopes local(config.local_rope, positions, places, *options.device);
  const auto block = [&](int64_t layer) {
    const bool windowed = config.windows[static_cast<size_t>(layer)] != 0;
    return std::make_unique<const PostNormBlock>(places.layer(weights, layer),
                                                 block_spec(config, layer),
                                                 (windowed ? local : global).of_layer(layer));
  };
  return std::make_unique<Decoder>(config, weights, DecoderSpec{}, block, places.host());
}

}  // namespace rbee::models
