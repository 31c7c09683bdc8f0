#include "rbee/models/gemma2/config.h"

#include <cmath>

namespace rbee::models {
namespace {

// query_pre_attn_scalar is the head size, but for the 27B model (46 layers) the width by heads;
// GGUF files do not say it.
double read_query_scalar(const ConfigReader& reader, const ModelConfig& config) {
  if (!reader.is_gguf()) {
    return reader.number({"", "query_pre_attn_scalar"}, 256, io::kAboveZero);
  }
  constexpr int64_t kLayersOf27B = 46;
  return static_cast<double>(config.layers == kLayersOf27B ? config.dim / config.heads
                                                           : config.head_dim);
}

float read_softcap(const ConfigReader& reader, Field field, double fallback) {
  if (reader.is_null(field)) return 0;
  return static_cast<float>(reader.number(field, fallback, io::kFromZero));
}

}  // namespace

Gemma2Config read_gemma2_config(const ConfigReader& reader) {
  Gemma2Config config{read_common(reader, {.vocab_size = 256000,
                                           .dim = 2304,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_dim = 256,
                                           .ffn_dim = 9216,
                                           .context_length = 8192,
                                           .tied_embeddings = true})};
  config.activation = read_activation(reader, "gelu_pytorch_tanh");
  config.rope = read_rope(reader, config, 10000);
  const double scalar = read_query_scalar(reader, config);
  config.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  config.attention_softcap =
      read_softcap(reader, {"attn_logit_softcapping", "attn_logit_softcapping"}, 50);
  config.logit_softcap =
      read_softcap(reader, {"final_logit_softcapping", "final_logit_softcapping"}, 30);
  config.windows = layer_windows(reader, config, read_window(reader, 4096),
                                 [](int64_t layer) { return layer % 2 == 0; });
  config.norm_weight_offset = reader.is_gguf() ? 0.0f : 1.0f;
  return config;
}

}  // namespace rbee::models
