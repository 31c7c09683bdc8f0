#include "rbee/models/qwen2/config.h"

namespace rbee::models {

Qwen2Config read_qwen2_config(const ConfigReader& reader) {
  Qwen2Config config{read_common(reader, {.kv_heads = 32, .context_length = 32768})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  const bool windowed = reader.is_gguf() || reader.flag({"", "use_sliding_window"}, false);
  const int64_t first = reader.integer({"", "max_window_layers"}, 28, {0, int64_t{1} << 31});
  config.windows = layer_windows(reader, config, windowed ? read_window(reader, 4096) : 0,
                                 [&](int64_t layer) { return layer >= first; });
  return config;
}

}  // namespace rbee::models
