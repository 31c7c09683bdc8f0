#include "rbee/models/qwen3_next/config.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";
constexpr Limits kWidth{1, int64_t{1} << 24};
constexpr Limits kHeads{1, int64_t{1} << 14};

bool is_next(const ConfigReader& reader) {
  return reader.architecture() == "qwen3next" || reader.architecture() == "qwen3_next";
}

// A list of the layers, or one layer with attention in so many.
std::vector<bool> read_recurrent(const ConfigReader& reader, const ModelConfig& config) {
  constexpr Field kInterval{"full_attention_interval", "full_attention_interval"};
  constexpr Field kFlags{"attention.recurrent_layers", ""}, kTypes{"", "layer_types"};
  const int64_t interval = reader.integer(kInterval, 4, kHeads);
  std::vector<bool> out(static_cast<size_t>(config.layers));
  for (size_t i = 0; i < out.size(); ++i) out[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
  // GGUF files also list the layers for drafts.
  const std::vector<bool> flags = reader.flags(kFlags);
  check(flags.empty() || flags.size() >= out.size(), kOp, reader.describe(kFlags), " has ",
        flags.size(), " entries for ", out.size(), " layers");
  for (size_t i = 0; i < out.size() && !flags.empty(); ++i) out[i] = flags[i];
  const std::vector<std::string> types = reader.texts(kTypes);
  check(types.empty() || types.size() == out.size(), kOp, reader.describe(kTypes), " has ",
        types.size(), " entries for ", out.size(), " layers");
  for (size_t i = 0; i < types.size(); ++i) {
    out[i] = types[i] == "linear_attention";
    if (out[i] || types[i] == "full_attention") continue;
    fail(Code::unsupported, kOp, reader.describe(kTypes), "[", i, "] is \"", types[i],
         "\"; known are full_attention and linear_attention");
  }
  return out;
}

nn::GatedDeltaNetSpec read_delta_net(const ConfigReader& reader, const ModelConfig& config) {
  const auto size = [&](Field field, int64_t fallback, Limits limits) {
    return reader.is_gguf() ? reader.integer(field, limits)
                            : reader.integer(field, fallback, limits);
  };
  constexpr Field kValueHeads{"ssm.time_step_rank", "linear_num_value_heads"};
  nn::GatedDeltaNetSpec out{.dim = config.dim, .eps = config.norm_eps};
  out.key_heads = size({"ssm.group_count", "linear_num_key_heads"}, 16, kHeads);
  out.value_heads = size(kValueHeads, 32, kHeads);
  check(out.value_heads % out.key_heads == 0, kOp, reader.describe(kValueHeads), " is ",
        out.value_heads, ", wanted a multiple of the ", out.key_heads, " key heads");
  out.key_dim = size({"ssm.state_size", "linear_key_head_dim"}, 128, kHeads);
  constexpr Field kInner{"ssm.inner_size", ""};
  if (reader.is_gguf()) {
    const int64_t inner = reader.integer(kInner, kWidth);
    check(inner % out.value_heads == 0, kOp, reader.describe(kInner), " is ", inner,
          ", wanted a multiple of the ", out.value_heads, " value heads");
    out.value_dim = inner / out.value_heads;
  } else {
    out.value_dim = reader.integer({"", "linear_value_head_dim"}, 128, kHeads);
  }
  out.taps = size({"ssm.conv_kernel", "linear_conv_kernel_dim"}, 4, {2, 64}) - 1;
  // llama.cpp's converter orders the value heads of Qwen3.5, and not those of Qwen3-Next, so that
  // heads of one key are far apart.
  out.tiled = reader.is_gguf() && !is_next(reader);
  return out;
}

void read_mixture(const ConfigReader& reader, Qwen3NextConfig& config) {
  constexpr Field kStep{"", "decoder_sparse_step"}, kDense{"", "mlp_only_layers"};
  if (reader.integer(kStep, 1) != 1 || !reader.numbers(kDense, io::kFromZero).empty()) {
    fail(Code::unsupported, kOp, reader.describe(kStep), " or ", reader.describe(kDense),
         " leaves layers without experts, which is not implemented for this architecture");
  }
  config.experts = read_experts(reader);
  config.expert_ffn_dim =
      reader.integer({"expert_feed_forward_length", "moe_intermediate_size"}, 512, kWidth);
  config.shared_ffn_dim = reader.integer(
      {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}, 512, kWidth);
  config.normalise = reader.flag({"expert_weights_norm", "norm_topk_prob"}, true);
}

}  // namespace

Qwen3NextConfig read_qwen3_next_config(const ConfigReader& reader) {
  constexpr Field kExperts{"expert_count", "num_experts"};
  const bool mixture = reader.has(kExperts);
  Qwen3NextConfig config{read_common(reader, {.vocab_size = is_next(reader) ? 151936 : 248320,
                                              .kv_heads = is_next(reader) ? 2 : 4,
                                              .head_dim = 256,
                                              .context_length = 32768,
                                              .experts = true,
                                              .all_experts = mixture})};
  // GGUF files count the layers for drafts too.
  const int64_t drafts = reader.integer({"nextn_predict_layers", ""}, 0, {0, config.layers - 1});
  config.layers -= drafts;
  constexpr Field kTied{"", "tie_word_embeddings"};
  if (!reader.is_gguf() && ConfigReader(reader.checkpoint()).flag(kTied, false)) {
    config.tied_embeddings = true;
  }
  if (read_activation(reader, "silu") != GateOp::silu) {
    fail(Code::unsupported, kOp, "hidden_act is not silu, the only one that is implemented for ",
         "this architecture");
  }
  config.rope = read_rope(reader, config, 10000);
  constexpr Field kPartial{"rope.dimension_count",
                           "rope_parameters.partial_rotary_factor|partial_rotary_factor"};
  if (!reader.has(kPartial)) config.rope.rotary_dim = config.head_dim / 4;
  if (reader.flag({"", "attention_bias"}, false)) config.attention_bias = nn::Bias::required;
  config.delta_net = read_delta_net(reader, config);
  config.recurrent = read_recurrent(reader, config);
  config.norm_weight_offset = reader.is_gguf() ? 0.0f : 1.0f;
  if (mixture) read_mixture(reader, config);
  return config;
}

}  // namespace rbee::models
