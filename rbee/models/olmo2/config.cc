#include "rbee/models/olmo2/config.h"

#include <algorithm>

namespace rbee::models {
namespace {

// One layer in this many sees all tokens. EXAONE 4's files may say it by letters, "LLLG".
int64_t read_period(const ConfigReader& reader) {
  constexpr Field kPeriod{"", "sliding_window_pattern"};
  constexpr int64_t kUsual = 4;
  if (!reader.texts({"", "layer_types"}).empty()) return kUsual;  // the list wins
  if (!reader.is_text(kPeriod)) return reader.integer(kPeriod, kUsual, {0, int64_t{1} << 14});
  const std::string letters = reader.text(kPeriod, "");
  const size_t full = letters.find('G');
  const bool known = full + 1 == letters.size() && letters.find_first_not_of("L") == full;
  if (!known) {
    fail(Code::unsupported, "model config", reader.describe(kPeriod), " is \"", letters,
         "\"; known are letters L and a last G");
  }
  return static_cast<int64_t>(letters.size());
}

// OLMo 2 has no windows, and files of OLMo 3 call themselves olmo2 in GGUF.
int64_t read_size(const ConfigReader& reader) {
  const bool olmo2 = !reader.is_gguf() && reader.architecture() == "olmo2";
  return olmo2 ? 0 : read_window(reader, 4096);
}

}  // namespace

Olmo2Config read_olmo2_config(const ConfigReader& reader) {
  const bool exaone = reader.architecture() == "exaone4";
  const bool olmo3 = reader.architecture() == "olmo3";
  Olmo2Config config{read_common(reader, {.context_length = 2048, .norm_eps = 1e-5})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, olmo3 ? 500000 : 10000, olmo3 ? "full_attention" : "");
  const int64_t period = read_period(reader);
  config.windows = layer_windows(reader, config, read_size(reader), [&](int64_t layer) {
    return period > 0 && (layer + 1) % period != 0;
  });
  config.local_rope = config.rope;
  const bool windowed = std::ranges::any_of(config.windows, [](int64_t size) { return size > 0; });
  config.rotated.assign(config.windows.size(), true);
  if (exaone) {
    config.qk_norm = nn::QkNorm::head;
    for (size_t i = 0; windowed && i < config.windows.size(); ++i) {
      config.rotated[i] = config.windows[i] > 0;
    }
  } else {
    config.local_rope = {.rotary_dim = config.rope.rotary_dim, .base = config.rope.base};
    constexpr Field kBase{"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta"};
    config.local_rope.base = reader.number(kBase, config.rope.base, kRopeBase);
  }
  if (reader.flag({"", "attention_bias"}, false)) config.attention_bias = nn::Bias::required;
  return config;
}

}  // namespace rbee::models
