#include "rbee/models/gemma3/model.h"

#include <cmath>

#include "rbee/models/blocks.h"
#include "rbee/models/gemma3/config.h"
#include "rbee/models/gemma3/pictures.h"

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
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_norm", "model.layers.*.pre_feedforward_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm"},
};
constexpr std::string_view kOtherParts[] = {".rotary_emb.inv_freq", "vision_tower.",
                                            "multi_modal_projector.", "dense_2.", "dense_3."};

BlockSpec block_spec(const Gemma3Config& config, int64_t index) {
  return {
      .norm = {.dim = config.dim,
               .eps = config.norm_eps,
               .weight_offset = config.norm_weight_offset},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qk_norm = nn::QkNorm::head,
                    .head_norm = {.dim = config.head_dim,
                                  .eps = config.norm_eps,
                                  .weight_offset = config.norm_weight_offset},
                    .scores = {.scale = config.attention_scale,
                               .window = config.windows[static_cast<size_t>(index)]}},
      .mlp = {.dim = config.dim, .ffn_dim = config.ffn_dim, .activation = config.activation},
  };
}

}  // namespace

std::span<const nn::TensorName> gemma3_tensor_names() {
  return kNames;
}

std::unique_ptr<LanguageModel> load_gemma3(const io::Checkpoint& checkpoint,
                                           const LoadOptions& options) {
  Gemma3Config config = read_gemma3_config(ConfigReader(checkpoint, "text_config"));
  const nn::WeightScope weights(checkpoint, weight_options(options, kNames, kOtherParts));
  add_rope_tensors(config.global_rope, weights);
  const int64_t positions = context_positions(config, options);
  const LayerPlaces places(config, options);
  const LayerRopes global(config.global_rope, positions, places, *options.device);
  const LayerRopes local(config.local_rope, positions, places, *options.device);
  const auto block = [&](int64_t layer) {
    const bool windowed = config.windows[static_cast<size_t>(layer)] != 0;
    return std::make_unique<const SandwichNormBlock>(places.layer(weights, layer),
                                                     block_spec(config, layer),
                                                     (windowed ? local : global).of_layer(layer));
  };
  return std::make_unique<Decoder>(
      config, weights,
      DecoderSpec{.embedding_scale = std::sqrt(static_cast<float>(config.dim)),
                  .norm_weight_offset = config.norm_weight_offset,
                  .logit_softcap = config.logit_softcap,
                  .pictures = load_gemma3_pictures(checkpoint, options, config.dim)},
      block, places.host());
}

}  // namespace rbee::models
