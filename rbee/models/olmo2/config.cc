#include "rbee/models/olmo2/config.h"

namespace rbee::models {

Olmo2Config read_olmo2_config(const ConfigReader& reader) {
  constexpr Field kWindow{"attention.sliding_window", ""};  // OLMo 3's files call themselves olmo2
  if (reader.has(kWindow)) {
    fail(Code::unsupported, "model config", reader.describe(kWindow),
         " is given; OLMo 3's windows are not implemented");
  }
  Olmo2Config config{read_common(reader, {.context_length = 2048, .norm_eps = 1e-5})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  if (reader.flag({"", "attention_bias"}, false)) config.attention_bias = nn::Bias::required;
  return config;
}

}  // namespace rbee::models
