#include "rbee/models/llama_moe/config.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";
constexpr Limits kWidth{1, int64_t{1} << 24};
constexpr Limits kShared{0, 1024};

// GGUF files do not say whether there are biases; their tensors do.
nn::Bias read_bias(const ConfigReader& reader, std::string_view hf) {
  if (reader.is_gguf()) return nn::Bias::optional;
  return reader.flag({"", hf}, false) ? nn::Bias::required : nn::Bias::none;
}

bool has_tensor(const ConfigReader& reader, std::string_view name) {
  return reader.checkpoint().find(name) != nullptr;
}

// What all of them have.
LlamaMoeConfig read_shape(const ConfigReader& reader, ConfigDefaults defaults, double rope_base) {
  defaults.experts = true;
  LlamaMoeConfig config{read_common(reader, defaults)};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, rope_base);
  const ExpertCounts experts = read_experts(reader);
  config.moe.dim = config.dim;
  config.moe.experts = experts.all;
  config.moe.activation = config.activation;
  config.moe.route.chosen = experts.chosen;
  config.moe.route.normalise = true;
  config.moe.ffn_dim = reader.integer({"expert_feed_forward_length", "moe_intermediate_size"},
                                      config.ffn_dim, kWidth);
  config.sparse.assign(static_cast<size_t>(config.layers), true);
  return config;
}

// Layers from `first` to `last` have experts, of these every `step`-th.
void keep_sparse(LlamaMoeConfig& config, int64_t first, int64_t last, int64_t step) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    config.sparse[static_cast<size_t>(layer)] =
        layer >= first && layer <= last && (layer + 1) % step == 0;
  }
}

// Choice by sigmoids and a bias, as DeepSeek-V3's: DeepSeek-AI 2024, section 2.1.2.
void route_by_sigmoid(LlamaMoeConfig& config) {
  config.moe.route.score = ExpertScore::sigmoid;
  config.moe.route.group_score = GroupScore::two_best;
  config.moe.choice_bias = true;
}

void read_glm_route(const ConfigReader& reader, RouteOptions& route) {
  constexpr Field kScale{"expert_weights_scale", "routed_scaling_factor"};
  const double scale = reader.number(kScale, 1, io::kFromZero);
  route.scale = scale == 0 ? 1.0f : static_cast<float>(scale);  // as llama.cpp reads it
  route.normalise = reader.flag({"expert_weights_norm", "norm_topk_prob"}, !reader.is_gguf());
  route.groups = reader.integer({"expert_group_count", "n_group"}, 1, {1, kMaxExperts});
  route.kept_groups =
      reader.integer({"expert_group_used_count", "topk_group"}, 1, {1, route.groups});
}

// Layers behind the last predict further tokens; they are not run.
int64_t predicting_layers(const ConfigReader& reader, const ModelConfig& config) {
  return reader.integer({"nextn_predict_layers", ""}, 0, {0, config.layers - 1});
}

LlamaMoeConfig read_glm4_moe(const ConfigReader& reader) {
  LlamaMoeConfig config =
      read_shape(reader, {.kv_heads = 8, .context_length = 131072, .norm_eps = 1e-5}, 10000);
  config.layers -= predicting_layers(reader, config);
  config.sparse.resize(static_cast<size_t>(config.layers));
  constexpr Field kPartial{"rope.dimension_count",
                           "rope_parameters.partial_rotary_factor|partial_rotary_factor"};
  if (!reader.has(kPartial)) config.rope.rotary_dim = config.head_dim / 2;
  config.qkv_bias = read_bias(reader, "attention_bias");
  const bool norms = reader.is_gguf() ? has_tensor(reader, "blk.0.attn_q_norm.weight")
                                      : reader.flag({"", "use_qk_norm"}, false);
  config.qk_norm = norms ? nn::QkNorm::head : nn::QkNorm::none;
  config.ffn_norm = "post_attention_norm";
  route_by_sigmoid(config);
  read_glm_route(reader, config.moe.route);
  constexpr Field kDense{"leading_dense_block_count", "first_k_dense_replace"};
  keep_sparse(config, reader.integer(kDense, reader.is_gguf() ? 0 : 1, {0, config.layers}),
              config.layers, 1);
  config.moe.shared_ffn_dim =
      config.moe.ffn_dim * reader.integer({"expert_shared_count", "n_shared_experts"},
                                          reader.is_gguf() ? 0 : 1, kShared);
  return config;
}

LlamaMoeConfig read_minimax_m2(const ConfigReader& reader) {
  LlamaMoeConfig config =
      read_shape(reader, {.kv_heads = 8, .head_dim = 128, .context_length = 196608}, 5000000);
  config.rope.rotary_dim = reader.integer({"rope.dimension_count", "rotary_dim"},
                                          config.rope.rotary_dim, {2, config.head_dim});
  config.qk_norm = nn::QkNorm::row;
  route_by_sigmoid(config);
  return config;
}

LlamaMoeConfig read_ernie_moe(const ConfigReader& reader) {
  LlamaMoeConfig config = read_shape(
      reader, {.kv_heads = 4, .context_length = 131072, .norm_eps = 1e-5, .tied_embeddings = true},
      500000);
  config.rope.layout = RopeLayout::interleaved;
  config.plain_rows = true;
  config.qkv_bias = config.output_bias = config.mlp_bias = read_bias(reader, "use_bias");
  const Limits layers{-1, config.layers};
  const int64_t first =
      reader.integer({"leading_dense_block_count", "moe_layer_start_index"}, 1, layers);
  const int64_t last = reader.integer({"", "moe_layer_end_index"}, -1, layers);
  keep_sparse(config, first, last < 0 ? config.layers : last,
              reader.integer({"interleave_moe_layer_step", "moe_layer_interval"}, 1));
  const int64_t shared = reader.integer({"expert_shared_count", "moe_num_shared_experts"},
                                        reader.is_gguf() ? 0 : 2, kShared);
  config.moe.shared_ffn_dim = reader.integer({"expert_shared_feed_forward_length", ""},
                                             config.moe.ffn_dim * shared, {0, kWidth.highest});
  config.moe.choice_bias =
      !reader.is_gguf() || has_tensor(reader, cat("blk.", first, ".exp_probs_b.bias"));
  return config;
}

LlamaMoeConfig read_hunyuan_moe(const ConfigReader& reader) {
  LlamaMoeConfig config = read_shape(reader, {.context_length = 2048, .norm_eps = 1e-5}, 10000);
  refuse_flag(reader, {"", "use_cla"}, true);
  refuse_flag(reader, {"", "use_qk_norm"}, false);
  config.qk_norm = nn::QkNorm::turned;
  config.qkv_bias = config.output_bias = read_bias(reader, "attention_bias");
  config.moe.shared_ffn_dim = reader.integer(
      {"expert_shared_feed_forward_length", ""},
      config.ffn_dim * reader.integer({"", "num_shared_expert"}, 1, {1, 1024}), kWidth);
  return config;
}

}  // namespace

LlamaMoeConfig read_llama_moe_config(const ConfigReader& reader) {
  const std::string& architecture = reader.architecture();
  LlamaMoeConfig config;
  if (architecture.starts_with("glm4")) {
    config = read_glm4_moe(reader);
  } else if (architecture.starts_with("minimax")) {
    config = read_minimax_m2(reader);
  } else if (architecture.starts_with("ernie")) {
    config = read_ernie_moe(reader);
  } else {
    config = read_hunyuan_moe(reader);
  }
  const RouteOptions& route = config.moe.route;
  check(config.moe.experts % route.groups == 0 &&
            config.moe.experts / route.groups * route.kept_groups >= route.chosen,
        kOp, route.chosen, " of ", config.moe.experts, " experts cannot be chosen from ",
        route.kept_groups, " of ", route.groups, " groups");
  return config;
}

}  // namespace rbee::models
