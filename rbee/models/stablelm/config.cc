#include "rbee/models/stablelm/config.h"

namespace rbee::models {
namespace {

// GGUF files say it by the tensors that they have.
bool read_switch(const ConfigReader& reader, std::string_view hf, bool by_tensors) {
  return reader.is_gguf() ? by_tensors : reader.flag({"", hf}, false);
}

}  // namespace

StableLmConfig read_stablelm_config(const ConfigReader& reader) {
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
  return config;
}

}  // namespace rbee::models
