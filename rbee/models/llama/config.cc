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

// Whether a multimodal checkpoint ties its embeddings is said outside of the text's settings.
bool has_output_matrix(const io::Checkpoint& checkpoint) {
  return checkpoint.find("lm_head.weight") != nullptr ||
         checkpoint.find("language_model.lm_head.weight") != nullptr;
}

// Ministral 3's queries grow with the position; files of Mistral Small 3 say nothing of it.
void read_ministral3_rope(const ConfigReader& reader, bool required, nn::RopeOptions& rope) {
  constexpr Field kGrowth{"attention.temperature_scale", "rope_parameters.llama_4_scaling_beta"};
  constexpr io::NumberRange kRange{.lowest = 0, .highest = 100};
  rope.query_growth = required ? reader.number(kGrowth, kRange) : reader.number(kGrowth, 0, kRange);
  if (!reader.is_gguf()) return;
  // As llama.cpp reads it: of two attention factors the first is the usual one.
  rope.mscale_all_dim = reader.number({"rope.scaling.yarn_log_multiplier", ""}, 0, kYarnScale);
  rope.mscale = rope.mscale_all_dim == 0 ? 0 : 1;
}

ConfigDefaults defaults_of(const ConfigReader& reader) {
  const std::string& architecture = reader.architecture();
  if (architecture == "mistral") return {.kv_heads = 8, .context_length = 131072};
  if (architecture == "smollm3") {
    return {.kv_heads = 4, .context_length = 32768, .tied_embeddings = true};
  }
  if (architecture == "mistral3" || architecture == "ministral3") {
    return {.kv_heads = 8,
            .context_length = 262144,
            .norm_eps = 1e-5,
            .tied_embeddings = !has_output_matrix(reader.checkpoint())};
  }
  if (architecture == "seed_oss") return {.kv_heads = 8, .head_dim = 128, .context_length = 524288};
  if (architecture == "ernie4_5") {
    return {.kv_heads = 2,
            .head_dim = 128,
            .context_length = 131072,
            .norm_eps = 1e-5,
            .tied_embeddings = true};
  }
  return {.context_length = 2048};
}

// Where the architecture differs from Llama.
void set_variant(const ConfigReader& reader, LlamaConfig& config) {
  const std::string& architecture = reader.architecture();
  if (architecture == "granite") read_granite_scales(reader, config);
  if (architecture == "smollm3") config.rotated = read_smollm3_layers(reader, config);
  if (architecture == "seed_oss") {
    if (!reader.has({"", "attention_bias"}) && !reader.is_gguf()) {
      config.attention_bias = nn::Bias::required;
    }
    config.plain_rows = true;
    config.output_bias = read_bias(reader, "attention_out_bias");
    config.ffn_norm = "post_attention_norm";
    config.rope.layout = RopeLayout::half;
  } else if (architecture == "ernie4_5") {
    config.attention_bias = config.output_bias = config.mlp_bias = read_bias(reader, "use_bias");
    config.plain_rows = true;
    config.rope.layout = RopeLayout::interleaved;
  } else if (architecture.starts_with("hunyuan")) {
    refuse_flag(reader, {"", "use_cla"}, true);  // keys of another layer
    refuse_flag(reader, {"", "use_qk_norm"}, false);
    config.turned_norm = true;
    config.plain_rows = true;
    config.rope.layout = RopeLayout::half;
  }
}

double rope_base_of(std::string_view architecture) {
  if (architecture == "smollm3") return 2000000;
  return architecture == "ernie4_5" ? 500000 : 10000;
}

}  // namespace

LlamaConfig read_llama_config(const ConfigReader& reader) {
  // Of a multimodal checkpoint, the type of its text.
  const std::string type = reader.is_gguf()
                               ? reader.architecture()
                               : reader.text({"", "model_type"}, reader.architecture());
  const bool mistral = !reader.is_gguf() && type == "mistral";
  LlamaConfig config{read_common(reader, defaults_of(reader))};
  config.activation = read_activation(reader, "silu");
  config.rope = read_rope(reader, config, rope_base_of(type));
  // llama.cpp's converter reorders the rows of q and k so that pairs lie side by side.
  config.rope.layout = reader.is_gguf() ? RopeLayout::interleaved : RopeLayout::half;
  if (type == "ministral3" || type == "mistral3") {
    read_ministral3_rope(reader, type == "ministral3", config.rope);
  }
  const bool ministral3 = type == "ministral3";
  if (mistral || ministral3 || reader.is_gguf()) {
    config.window = read_causal_window(reader, config, ministral3 ? 0 : 4096);
  }
  config.attention_bias = config.output_bias = read_bias(reader, "attention_bias");
  config.mlp_bias = read_bias(reader, "mlp_bias");
  config.rotated.assign(static_cast<size_t>(config.layers), true);
  set_variant(reader, config);
  return config;
}

}  // namespace rbee::models
