#include "rbee/models/llama/config.h"

namespace rbee::models {
namespace {

// GGUF files do not say whether there are biases; their tensors do.
nn::Bias read_bias(const ConfigReader& reader, std::string_view hf) {
  if (reader.is_gguf()) return nn::Bias::optional;
  return reader.flag({"", hf}, false) ? nn::Bias::required : nn::Bias::none;
}

}  // namespace

LlamaConfig read_llama_config(const ConfigReader& reader) {
  const bool mistral = !reader.is_gguf() && reader.architecture() == "mistral";
  LlamaConfig config{read_common(
      reader, {.kv_heads = mistral ? 8 : 0, .context_length = mistral ? 131072 : 2048})};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, 10000);
  // llama.cpp's converter reorders the rows of q and k so that pairs lie side by side.
  config.rope.layout = reader.is_gguf() ? RopeLayout::interleaved : RopeLayout::half;
  config.window = mistral || reader.is_gguf() ? read_window(reader, 4096) : 0;
  config.attention_bias = read_bias(reader, "attention_bias");
  config.mlp_bias = read_bias(reader, "mlp_bias");
  return config;
}

}  // namespace rbee::models
