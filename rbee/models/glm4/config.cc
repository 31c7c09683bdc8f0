#include "rbee/models/glm4/config.h"

namespace rbee::models {

Glm4Config read_glm4_config(const ConfigReader& reader) {
  Glm4Config config{read_common(
      reader, {.kv_heads = 2, .head_dim = 128, .context_length = 131072, .norm_eps = 1.5625e-7})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  config.rope.layout = RopeLayout::interleaved;
  constexpr Field kPartial{"rope.dimension_count",
                           "rope_parameters.partial_rotary_factor|partial_rotary_factor"};
  if (!reader.has(kPartial)) config.rope.rotary_dim = config.head_dim / 2;
  // GGUF files say it by the tensors that they have.
  if (reader.is_gguf()) {
    config.qkv_bias = nn::Bias::optional;
  } else if (reader.flag({"", "attention_bias"}, true)) {
    config.qkv_bias = nn::Bias::required;
  }
  return config;
}

}  // namespace rbee::models
