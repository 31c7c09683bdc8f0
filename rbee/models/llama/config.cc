#include "rbee/models/llama/config.h"

#include <cmath>

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

// GGUF files do not say whether there are biases; their tensors do.
nn::Bias read_bias(const ConfigReader& reader, std::string_view hf) {
  if (reader.is_gguf()) return nn::Bias::optional;
  return reader.flag({"", hf}, false) ? nn::Bias::required : nn::Bias::none;
}

double read_scale(const ConfigReader& reader, Field field) {
  return reader.number(field, 1, io::kAboveZero);
}

void read_granite_scales(const ConfigReader& reader, LlamaConfig& config) {
  const auto scale = [&](std::string_view gguf, std::string_view hf) {
    return static_cast<float>(read_scale(reader, {gguf, hf}));
  };
  config.embedding_scale = scale("embedding_scale", "embedding_multiplier");
  config.branch_scale = scale("residual_scale", "residual_multiplier");
  config.logit_scale = 1 / scale("logit_scale", "logits_scaling");
  // GGUF files may leave it out, which means the usual one.
  constexpr Field kAttention{"attention.scale", "attention_multiplier"};
  if (!reader.is_gguf() || reader.has(kAttention)) {
    config.attention_scale = scale(kAttention.gguf, kAttention.hf);
  }
}

// GGUF files do not say it: readers leave out every fourth.
std::vector<bool> read_smollm3_layers(const ConfigReader& reader, const LlamaConfig& config) {
  if (reader.flag({"", "use_sliding_window"}, false)) {
    fail(Code::unsupported, kOp, "use_sliding_window is true; SmolLM3's windows are not ",
         "implemented");
  }
  constexpr Field kList{"", "no_rope_layers"};
  const auto layers = static_cast<size_t>(config.layers);
  const std::vector<double> list = reader.numbers(kList, {});  // 1 = rotated, against its name
  std::vector<bool> rotated;
  if (!list.empty()) {
    check(list.size() >= layers, kOp, reader.describe(kList), " has ", list.size(), " entries for ",
          layers, " layers");
    for (size_t i = 0; i < layers; ++i) rotated.push_back(list[i] != 0);
    return rotated;
  }
  const int64_t period = reader.integer({"", "no_rope_layer_interval"}, 4, {1, 1 << 14});
  for (int64_t i = 0; i < config.layers; ++i) rotated.push_back((i + 1) % period != 0);
  return rotated;
}

ConfigDefaults defaults_of(const ConfigReader& reader) {
  const std::string& architecture = reader.architecture();
  if (architecture == "mistral") return {.kv_heads = 8, .context_length = 131072};
  if (architecture == "smollm3") {
    return {.kv_heads = 4, .context_length = 32768, .tied_embeddings = true};
  }
  return {.context_length = 2048};
}

}  // namespace

LlamaConfig read_llama_config(const ConfigReader& reader) {
  const bool mistral = !reader.is_gguf() && reader.architecture() == "mistral";
  const bool smollm3 = reader.architecture() == "smollm3";
  LlamaConfig config{read_common(reader, defaults_of(reader))};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, smollm3 ? 2000000 : 10000);
  // llama.cpp's converter reorders the rows of q and k so that pairs lie side by side.
  config.rope.layout = reader.is_gguf() ? RopeLayout::interleaved : RopeLayout::half;
  config.window = mistral || reader.is_gguf() ? read_causal_window(reader, config, 4096) : 0;
  config.attention_bias = read_bias(reader, "attention_bias");
  config.mlp_bias = read_bias(reader, "mlp_bias");
  if (reader.architecture() == "granite") read_granite_scales(reader, config);
  config.rotated.assign(static_cast<size_t>(config.layers), true);
  if (smollm3) config.rotated = read_smollm3_layers(reader, config);
  return config;
}

}  // namespace rbee::models
