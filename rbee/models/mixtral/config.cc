#include "rbee/models/mixtral/config.h"

namespace rbee::models {

MixtralConfig read_mixtral_config(const ConfigReader& reader) {
  MixtralConfig config{{read_common(
      reader, {.kv_heads = 8, .context_length = 131072, .norm_eps = 1e-5, .experts = true})}};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 1000000);
  // llama.cpp's converter reorders the rows of q and k so that pairs lie side by side.
  config.rope.layout = reader.is_gguf() ? RopeLayout::interleaved : RopeLayout::half;
  config.window = read_causal_window(reader, config, 0);
  config.experts = read_experts(reader);
  return config;
}

}  // namespace rbee::models
