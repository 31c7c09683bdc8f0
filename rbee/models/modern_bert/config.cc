#include "rbee/models/modern_bert/config.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

int64_t read_period(const ConfigReader& reader) {
  constexpr Field kPeriod{"attention.sliding_window_pattern", "global_attn_every_n_layers"};
  constexpr int64_t kUsual = 3;
  if (!reader.flags(kPeriod).empty()) return kUsual;
  return reader.integer(kPeriod, kUsual, {1, int64_t{1} << 14});
}

nn::RopeOptions read_local_rope(const ConfigReader& reader, const ModelConfig& config) {
  nn::RopeOptions rope;
  rope.rotary_dim = config.head_dim;
  rope.base = reader.number(
      {"rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta|local_rope_theta"},
      10000, kRopeBase);
  return rope;
}

UnaryOp read_head_activation(const ConfigReader& reader) {
  constexpr Field kActivation{"", "classifier_activation"};
  const std::string name = reader.text(kActivation, "gelu");
  if (name == "gelu") return UnaryOp::gelu_erf;
  if (name == "silu" || name == "swish") return UnaryOp::silu;
  if (name == "relu") return UnaryOp::relu;
  if (name == "tanh") return UnaryOp::tanh;
  fail(Code::unsupported, kOp, reader.describe(kActivation), " is \"", name,
       "\"; known are gelu, silu, relu and tanh");
}

// GGUF files do not say it; llama.cpp takes the mean.
Pooling read_head_pooling(const ConfigReader& reader) {
  constexpr Field kPooling{"", "classifier_pooling"};
  const std::string name = reader.text(kPooling, reader.is_gguf() ? "mean" : "cls");
  if (name == "mean" || name == "cls") return parse_pooling(name);
  fail(Code::unsupported, kOp, reader.describe(kPooling), " is \"", name,
       "\"; known are mean and cls");
}

}  // namespace

ModernBertConfig read_modern_bert_config(const ConfigReader& reader) {
  ModernBertConfig config{read_common(reader, {.vocab_size = 50368,
                                               .dim = 768,
                                               .layers = 22,
                                               .heads = 12,
                                               .ffn_dim = 1152,
                                               .context_length = 8192,
                                               .norm_eps = 1e-5,
                                               .layer_norm = true})};
  config.causal = false;
  config.activation = read_activation(reader, "gelu");
  const double base = reader.number({"", "global_rope_theta"}, 160000, kRopeBase);
  config.global_rope = read_rope(reader, config, base, "full_attention");
  config.local_rope = read_local_rope(reader, config);
  const int64_t period = read_period(reader);
  const int64_t window = reader.integer({"attention.sliding_window", "local_attention"},
                                        reader.is_gguf() ? 0 : 128, {0, int64_t{1} << 31});
  config.windows =
      layer_windows(reader, config, window, [&](int64_t layer) { return layer % period != 0; });
  config.head_activation = read_head_activation(reader);
  config.head_pooling = read_head_pooling(reader);
  return config;
}

}  // namespace rbee::models
