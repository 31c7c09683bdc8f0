#include "rbee/models/llama/model.h"

#include <algorithm>
#include <array>

#include "rbee/models/blocks.h"
#include "rbee/models/llama/config.h"
#include "rbee/models/mixtral/model.h"
#include "rbee/models/registry.h"

namespace rbee::models {
namespace {

constexpr auto kNames = std::to_array<nn::TensorName>({
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
});

constexpr std::array kSeedOssNames = [] {
  auto names = kNames;
  std::ranges::find(names, "blk.*.ffn_norm", &nn::TensorName::gguf)->gguf =
      "blk.*.post_attention_norm";
  return names;
}();

constexpr std::array kHunyuanNames = [] {
  std::array<nn::TensorName, kNames.size() + 2> names{
      {{"token_embd", "model.embed_tokens"},
       {"blk.*.attn_q_norm", "model.layers.*.self_attn.query_layernorm"},
       {"blk.*.attn_k_norm", "model.layers.*.self_attn.key_layernorm"}}};
  std::copy(kNames.begin() + 1, kNames.end(), names.begin() + 3);
  return names;
}();

BlockSpec block_spec(const LlamaConfig& config, int64_t index) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.attention_bias,
                    .output_bias = config.output_bias,
                    .plain_rows = config.plain_rows,
                    .qk_norm = config.turned_norm ? nn::QkNorm::turned : nn::QkNorm::none,
                    .head_norm = {.dim = config.head_dim, .eps = config.norm_eps},
                    .rotated = config.rotated[static_cast<size_t>(index)],
                    .scores = {.scale = config.attention_scale, .window = config.window}},
      .mlp = {.dim = config.dim,
              .ffn_dim = config.ffn_dim,
              .activation = config.activation,
              .bias = config.mlp_bias},
      .ffn_norm = config.ffn_norm,
      .branch_scale = config.branch_scale,
  };
}

}  // namespace

std::span<const nn::TensorName> llama_tensor_names() {
  return kNames;
}

std::span<const nn::TensorName> seed_oss_tensor_names() {
  return kSeedOssNames;
}

std::span<const nn::TensorName> hunyuan_tensor_names() {
  return kHunyuanNames;
}

std::unique_ptr<LanguageModel> load_llama(const io::Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const ConfigReader reader(checkpoint, "text_config");
  if (reader.is_gguf() && reader.has({"expert_count", ""}) &&
      reader.integer({"expert_count", ""}, {0, kMaxExperts}) > 0) {
    return load_mixtral(checkpoint, options);
  }
  const LlamaConfig config = read_llama_config(reader);
  const auto block = [&](const nn::WeightScope& layer, int64_t index, const nn::Rope& rope) {
    return std::make_unique<const PreNormBlock>(layer, block_spec(config, index), rope);
  };
  return load_decoder(
      checkpoint, options, find_family(config.architecture).tensor_names(), config, config.rope,
      block, {.embedding_scale = config.embedding_scale, .logit_scale = config.logit_scale});
}

}  // namespace rbee::models
