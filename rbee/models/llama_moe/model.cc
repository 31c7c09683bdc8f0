#include "rbee/models/llama_moe/model.h"

#include "rbee/models/blocks.h"
#include "rbee/models/llama_moe/config.h"
#include "rbee/models/registry.h"

namespace rbee::models {
namespace {

BlockSpec block_spec(const LlamaMoeConfig& config) {
  return {
      .norm = {.dim = config.dim, .eps = config.norm_eps},
      .attention = {.dim = config.dim,
                    .heads = config.heads,
                    .kv_heads = config.kv_heads,
                    .head_dim = config.head_dim,
                    .qkv_bias = config.qkv_bias,
                    .output_bias = config.output_bias,
                    .plain_rows = config.plain_rows,
                    .qk_norm = config.qk_norm,
                    .head_norm = {.dim = config.head_dim, .eps = config.norm_eps}},
      .mlp = {.dim = config.dim,
              .ffn_dim = config.ffn_dim,
              .activation = config.activation,
              .bias = config.mlp_bias},
      .ffn_norm = config.ffn_norm,
  };
}

}  // namespace

std::unique_ptr<LanguageModel> load_llama_moe(const io::Checkpoint& checkpoint,
                                              const LoadOptions& options) {
  const LlamaMoeConfig config = read_llama_moe_config(ConfigReader(checkpoint));
  const auto block = [&](const nn::WeightScope& layer, int64_t index,
                         const nn::Rope& rope) -> std::unique_ptr<const Block> {
    if (!config.sparse[static_cast<size_t>(index)]) {
      return std::make_unique<const PreNormBlock>(layer, block_spec(config), rope);
    }
    return std::make_unique<const MoeBlock>(layer, block_spec(config), config.moe, rope);
  };
  const auto names = find_family(checkpoint.architecture()).tensor_names();
  return load_decoder(checkpoint, options, names, config, config.rope, block);
}

}  // namespace rbee::models
