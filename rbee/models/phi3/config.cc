#include "rbee/models/phi3/config.h"

namespace rbee::models {

Phi3Config read_phi3_config(const ConfigReader& reader) {
  Phi3Config config{read_common(reader, {.context_length = 4096, .norm_eps = 1e-5})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  // Early configs call LongRoPE "yarn", and GGUF files only have its tensors.
  const bool factors = reader.is_gguf()
                           ? reader.checkpoint().find("rope_factors_short.weight") != nullptr
                           : config.rope.scaling == nn::RopeScaling::yarn;
  if (factors) config.rope.scaling = nn::RopeScaling::longrope;
  config.window = read_causal_window(reader, config, 0);
  return config;
}

}  // namespace rbee::models
