#include "rbee/models/qwen_moe/config.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";
constexpr Limits kWidth{1, int64_t{1} << 24};

// Every decoder_sparse_step-th layer except those of mlp_only_layers; GGUF files: all.
std::vector<bool> sparse_layers(const ConfigReader& reader, const ModelConfig& config) {
  const int64_t step = reader.integer({"", "decoder_sparse_step"}, 1);
  std::vector<bool> sparse(static_cast<size_t>(config.layers));
  for (size_t i = 0; i < sparse.size(); ++i) {
    sparse[i] = (static_cast<int64_t>(i) + 1) % step == 0;
  }
  constexpr Field kDense{"", "mlp_only_layers"};
  for (const double layer : reader.numbers(kDense, {})) {
    const bool found = layer >= 0 && layer < static_cast<double>(config.layers) &&
                       layer == static_cast<double>(static_cast<int64_t>(layer));
    check(found, kOp, reader.describe(kDense), " has ", layer, ", wanted layers from 0 to ",
          config.layers - 1);
    sparse[static_cast<size_t>(layer)] = false;
  }
  return sparse;
}

QwenMoeConfig read_both(const ConfigReader& reader, const ConfigDefaults& defaults) {
  constexpr Field kWindowed{"", "use_sliding_window"};
  if (reader.flag(kWindowed, false)) {
    fail(Code::unsupported, kOp, reader.describe(kWindowed),
         " is true; windows are not implemented for this architecture");
  }
  QwenMoeConfig config{read_common(reader, defaults)};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  config.experts = read_experts(reader);
  config.expert_ffn_dim =
      reader.integer({"expert_feed_forward_length", "moe_intermediate_size"}, kWidth);
  config.sparse = sparse_layers(reader, config);
  return config;
}

}  // namespace

QwenMoeConfig read_qwen2_moe_config(const ConfigReader& reader) {
  QwenMoeConfig config =
      read_both(reader, {.kv_heads = 16, .context_length = 32768, .experts = true});
  constexpr Field kShared{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"};
  config.shared_ffn_dim = reader.integer(kShared, kWidth);
  config.qkv_bias = reader.flag({"", "qkv_bias"}, true) ? nn::Bias::required : nn::Bias::none;
  config.normalise = reader.flag({"expert_weights_norm", "norm_topk_prob"}, false);
  return config;
}

QwenMoeConfig read_qwen3_moe_config(const ConfigReader& reader) {
  QwenMoeConfig config =
      read_both(reader, {.kv_heads = 4, .context_length = 32768, .experts = true});
  config.qk_norm = true;
  if (reader.flag({"", "attention_bias"}, false)) {
    config.qkv_bias = config.output_bias = nn::Bias::required;
  }
  // All published models normalise; their configs say it, GGUF files take it for granted.
  config.normalise = reader.flag({"expert_weights_norm", "norm_topk_prob"}, reader.is_gguf());
  return config;
}

}  // namespace rbee::models
