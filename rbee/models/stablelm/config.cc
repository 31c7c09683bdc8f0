#include "rbee/models/stablelm/config.h"

namespace rbee::models {
namespace {

// GGUF files say it by the tensors that they have.
bool read_switch(const ConfigReader& reader, std::string_view hf, bool by_tensors) {
  return reader.is_gguf() ? by_tensors : reader.flag({"", hf}, false);
}

StableLmConfig read_cohere2_config(const ConfigReader& reader) {
  StableLmConfig config{read_common(
      reader,
      {.context_length = 8192, .norm_eps = 1e-5, .tied_embeddings = true, .layer_norm = true})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  config.rope.layout = RopeLayout::interleaved;
  config.parallel = true;
  config.logit_scale =
      static_cast<float>(reader.number({"logit_scale", "logit_scale"}, 0.0625, io::kAboveZero));
  if (reader.flag({"", "attention_bias"}, false)) {
    config.qkv_bias = config.output_bias = nn::Bias::required;
  }
  const int64_t period = reader.integer({"", "sliding_window_pattern"}, 4, {1, int64_t{1} << 14});
  config.windows = layer_windows(reader, config, read_causal_window(reader, config, 4096),
                                 [&](int64_t layer) { return (layer + 1) % period != 0; });
  for (const int64_t window : config.windows) config.rotated.push_back(window != 0);
  return config;
}

}  // namespace

StableLmConfig read_stablelm_config(const ConfigReader& reader) {
  if (reader.architecture() == "cohere2") return read_cohere2_config(reader);
  StableLmConfig config{read_common(reader, {.vocab_size = 50304,
                                             .dim = 2560,
                                             .layers = 32,
                                             .heads = 32,
                                             .kv_heads = 32,
                                             .ffn_dim = 6912,
                                             .context_length = 4096,
                                             .norm_eps = 1e-5,
                                             .layer_norm = true})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  constexpr Field kPartial{"rope.dimension_count",
                           "rope_parameters.partial_rotary_factor|partial_rotary_factor"};
  if (!reader.has(kPartial)) config.rope.rotary_dim = config.head_dim / 4;
  const auto has = [&](std::string_view name) { return reader.checkpoint().find(name) != nullptr; };
  config.qk_norm = read_switch(reader, "qk_layernorm", has("blk.0.attn_q_norm.weight"));
  config.parallel = read_switch(reader, "use_parallel_residual", !has("blk.0.ffn_norm.weight"));
  if (read_switch(reader, "use_qkv_bias", has("blk.0.attn_q.bias"))) {
    config.qkv_bias = nn::Bias::required;
  }
  config.windows.assign(static_cast<size_t>(config.layers), 0);
  config.rotated.assign(static_cast<size_t>(config.layers), true);
  return config;
}

}  // namespace rbee::models
