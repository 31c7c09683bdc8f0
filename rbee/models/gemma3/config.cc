#include "rbee/models/gemma3/config.h"

#include <cmath>

namespace rbee::models {
namespace {

// query_pre_attn_scalar is the head size, but for the 27B model (62 layers) the width by heads;
// GGUF files do not say it.
double read_query_scalar(const ConfigReader& reader, const ModelConfig& config) {
  if (!reader.is_gguf()) {
    return reader.number({"", "query_pre_attn_scalar"}, 256, io::kAboveZero);
  }
  constexpr int64_t kLayersOf27B = 62;
  return static_cast<double>(config.layers == kLayersOf27B ? config.dim / config.heads
                                                           : config.head_dim);
}

// Layers with a window turn by plain frequencies of their own base.
nn::RopeOptions read_local_rope(const ConfigReader& reader, const ModelConfig& config) {
  nn::RopeOptions rope;
  rope.rotary_dim = config.head_dim;
  rope.base = reader.number(
      {"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq"},
      10000, kRopeBase);
  return rope;
}

// One layer in this many sees all tokens. GGUF files may list the layers instead.
int64_t read_period(const ConfigReader& reader) {
  constexpr Field kPeriod{"attention.sliding_window_pattern", "sliding_window_pattern"};
  constexpr int64_t kUsual = 6;
  if (!reader.flags(kPeriod).empty()) return kUsual;
  return reader.integer(kPeriod, kUsual, {1, int64_t{1} << 14});
}

}  // namespace

Gemma3Config read_gemma3_config(const ConfigReader& reader) {
  Gemma3Config config{read_common(reader, {.vocab_size = 262208,
                                           .dim = 2304,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .ffn_dim = 9216,
                                           .context_length = 131072,
                                           .tied_embeddings = true})};
  config.activation = read_activation(reader, "gelu_pytorch_tanh");
  config.global_rope = read_rope(reader, config, 1000000, "full_attention");
  config.local_rope = read_local_rope(reader, config);
  const double scalar = read_query_scalar(reader, config);
  config.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  config.logit_softcap = static_cast<float>(
      reader.number({"final_logit_softcapping", "final_logit_softcapping"}, 0, io::kFromZero));
  const int64_t period = read_period(reader);
  config.windows = layer_windows(reader, config, read_window(reader, 4096),
                                 [&](int64_t layer) { return (layer + 1) % period != 0; });
  config.norm_weight_offset = reader.is_gguf() ? 0.0f : 1.0f;
  return config;
}

}  // namespace rbee::models
