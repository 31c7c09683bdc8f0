#include "rbee/models/deepseek/config.h"

#include <algorithm>
#include <cmath>

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";
constexpr Limits kWidth{1, int64_t{1} << 24};
constexpr Limits kCount{1, int64_t{1} << 14};
constexpr Limits kFromZero{0, int64_t{1} << 24};

// In newer GGUF files key_length and value_length are the sizes in the cache.
int64_t read_head_size(const ConfigReader& reader, std::string_view gguf,
                       std::string_view of_cache) {
  return reader.integer({reader.has({gguf, ""}) ? gguf : of_cache, ""}, kCount);
}

void read_attention(const ConfigReader& reader, DeepseekConfig& config) {
  nn::LatentAttentionSpec& spec = config.attention;
  spec.dim = config.dim;
  spec.heads = config.heads;
  // Of the latents: Hugging Face ignores the setting here.
  constexpr float kOwnEps = 1e-6f;
  spec.norm_eps = reader.is_gguf() ? config.norm_eps : kOwnEps;
  spec.rank = reader.integer({"attention.kv_lora_rank", "kv_lora_rank"}, kWidth);
  spec.query_rank = reader.integer({"attention.q_lora_rank", "q_lora_rank"}, 0, kFromZero);
  spec.rope_dim = reader.integer({"rope.dimension_count", "qk_rope_head_dim"}, kCount);
  if (reader.is_gguf()) {
    const int64_t key = read_head_size(reader, "attention.key_length_mla", "attention.key_length");
    check(key > spec.rope_dim, kOp, "keys of ", key, " elements have no room beside the ",
          spec.rope_dim, " that are rotated");
    spec.plain_dim = key - spec.rope_dim;
    spec.value_dim = read_head_size(reader, "attention.value_length_mla", "attention.value_length");
  } else {
    spec.plain_dim = reader.integer({"", "qk_nope_head_dim"}, kCount);
    spec.value_dim = reader.integer({"", "v_head_dim"}, kCount);
  }
  config.kv_heads = 1;
  config.head_dim = spec.rank + spec.rope_dim;
  config.one_cache = true;
}

// With YaRN the scores are scaled by the square of its attention factor, by which cos and sin are
// not: of their factors mscale and mscale_all_dim the quotient is left.
void read_rope_and_scale(const ConfigReader& reader, DeepseekConfig& config) {
  nn::LatentAttentionSpec& spec = config.attention;
  ModelConfig rotated = config;
  rotated.head_dim = spec.rope_dim;
  config.rope = read_rope(reader, rotated, 10000);
  config.rope.rotary_dim = spec.rope_dim;
  config.rope.layout = RopeLayout::interleaved;
  double magnitude = 1;
  if (config.rope.scaling == nn::RopeScaling::yarn && config.rope.factor > 1) {
    const double growth = std::log(config.rope.factor);
    if (reader.is_gguf()) {
      constexpr Field kMultiplier{"rope.scaling.yarn_log_multiplier", ""};
      magnitude = 1 + reader.number(kMultiplier, 0, kYarnScale) * growth;
      config.rope.attention_factor = 1;
    } else {
      magnitude = 1 + 0.1 * config.rope.mscale_all_dim * growth;
    }
  }
  spec.scale = static_cast<float>(magnitude * magnitude /
                                  std::sqrt(static_cast<double>(spec.plain_dim + spec.rope_dim)));
}

// GGUF says the function, Hugging Face the version: from V3 on sigmoids with a bias.
bool by_sigmoid(const ConfigReader& reader) {
  if (!reader.is_gguf()) return reader.architecture() != "deepseek_v2";
  constexpr Field kFunction{"expert_gating_func", ""};
  constexpr int64_t kSoftmax = 1, kSigmoid = 2;
  return reader.integer(kFunction, kSoftmax, {kSoftmax, kSigmoid}) == kSigmoid;
}

void read_route(const ConfigReader& reader, RouteOptions& route) {
  const bool sigmoid = by_sigmoid(reader);
  route.score = sigmoid ? ExpertScore::sigmoid : ExpertScore::softmax;
  route.group_score = sigmoid ? GroupScore::two_best : GroupScore::best;
  constexpr Field kScale{"expert_weights_scale", "routed_scaling_factor"};
  const double scale =
      reader.number(kScale, sigmoid ? 2.5 : 1.0, reader.is_gguf() ? io::kFromZero : io::kAboveZero);
  route.scale = scale == 0 ? 1.0f : static_cast<float>(scale);  // as llama.cpp reads it
  route.normalise = reader.flag({"expert_weights_norm", "norm_topk_prob"}, sigmoid);
  if (reader.text({"", "topk_method"}, "") == "greedy") return;
  route.groups = reader.integer({"expert_group_count", "n_group"}, 1, {1, kMaxExperts});
  route.kept_groups =
      reader.integer({"expert_group_used_count", "topk_group"}, 1, {1, route.groups});
}

// The first layers, which have no experts.
int64_t read_dense_layers(const ConfigReader& reader, const ModelConfig& config) {
  constexpr Field kTypes{"", "mlp_layer_types"};
  const std::vector<std::string> types = reader.texts(kTypes);
  if (types.empty()) {
    const bool glm = reader.architecture() == "glm4_moe_lite";
    return reader.integer({"leading_dense_block_count", "first_k_dense_replace"}, glm ? 1 : 0,
                          {0, config.layers});
  }
  const auto first = std::ranges::find_if(types, [](const auto& type) { return type != "dense"; });
  const bool known =
      std::all_of(first, types.end(), [](const auto& type) { return type == "sparse"; });
  if (!known || std::ssize(types) != config.layers) {
    fail(Code::unsupported, kOp, reader.describe(kTypes), " has ", types.size(), " entries for ",
         config.layers, " layers; wanted first dense ones, then sparse ones");
  }
  return first - types.begin();
}

void read_moe(const ConfigReader& reader, DeepseekConfig& config) {
  constexpr Field kStep{"", "moe_layer_freq"};
  const int64_t step = reader.integer(kStep, 1);
  if (step != 1) {
    fail(Code::unsupported, kOp, reader.describe(kStep), " is ", step, "; only 1 is implemented");
  }
  config.dense_layers = read_dense_layers(reader, config);
  const ExpertCounts experts = read_experts(reader);
  nn::MoeSpec& moe = config.moe;
  moe.dim = config.dim;
  moe.experts = experts.all;
  moe.ffn_dim = reader.integer({"expert_feed_forward_length", "moe_intermediate_size"}, kWidth);
  moe.activation = config.activation;
  moe.shared_ffn_dim =
      moe.ffn_dim * reader.integer({"expert_shared_count", "n_shared_experts"}, 0, {0, 1024});
  moe.route.chosen = experts.chosen;
  read_route(reader, moe.route);
  moe.choice_bias = moe.route.score == ExpertScore::sigmoid;
  const int64_t groups = moe.route.groups;
  check(experts.all % groups == 0 && experts.all / groups * moe.route.kept_groups >= experts.chosen,
        kOp, experts.chosen, " of ", experts.all, " experts cannot be chosen from ",
        moe.route.kept_groups, " of ", groups, " groups");
}

}  // namespace

DeepseekConfig read_deepseek_config(const ConfigReader& reader) {
  DeepseekConfig config{
      read_common(reader, {.context_length = 4096, .experts = true, .head_sizes = true})};
  constexpr Field kBias{"", "attention_bias"};
  if (reader.flag(kBias, false)) {
    fail(Code::unsupported, kOp, reader.describe(kBias),
         " is true; biases are not implemented for this architecture");
  }
  // Layers behind the last predict further tokens; they are not run.
  config.layers -= reader.integer({"nextn_predict_layers", ""}, 0, {0, config.layers - 1});
  config.activation = read_activation(reader, "silu");
  read_attention(reader, config);
  read_rope_and_scale(reader, config);
  read_moe(reader, config);
  return config;
}

}  // namespace rbee::models
