#include "rbee/models/common_config.h"

#include <algorithm>
#include <cmath>

#include "backends/api/args_experts.h"
#include "rbee/core/log.h"
#include "rbee/io/float4_folder.h"
#include "rbee/io/fp8_folder.h"
#include "rbee/io/integer_folder.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

// Far above any model, far below what overflows a product of two.
constexpr Limits kWidth{1, int64_t{1} << 24};
constexpr Limits kCount{1, int64_t{1} << 14};
constexpr Limits kPositions{1, int64_t{1} << 28};

int64_t read_size(const ConfigReader& reader, Field field, int64_t fallback, Limits limits) {
  if (fallback == 0 || reader.is_gguf()) return reader.integer(field, limits);
  return reader.integer(field, fallback, limits);
}

// GGUF files say it by the token table itself.
int64_t read_vocab_size(const ConfigReader& reader, int64_t fallback) {
  if (!reader.is_gguf()) return read_size(reader, {"", "vocab_size"}, fallback, kWidth);
  const io::TensorEntry& table = reader.checkpoint().require("token_embd.weight");
  check(table.shape.rank() == 2, kOp, "tensor token_embd.weight is (", table.shape,
        "), wanted two axes");
  check(table.shape[0] <= kWidth.highest, kOp, "tensor token_embd.weight has ", table.shape[0],
        " rows, wanted at most ", kWidth.highest);
  return table.shape[0];
}

int64_t read_head_dim(const ConfigReader& reader, const ModelConfig& config, int64_t fallback) {
  constexpr Field kHeadDim{"attention.key_length", "head_dim"};
  constexpr Field kValueDim{"attention.value_length", ""};
  if (!reader.has(kHeadDim) && (fallback == 0 || reader.is_gguf())) {
    check(config.dim % config.heads == 0, kOp, "a width of ", config.dim, " is not a multiple of ",
          config.heads, " heads, and no head size is given");
    fallback = config.dim / config.heads;
  }
  const int64_t head_dim = reader.integer(kHeadDim, fallback, kCount);
  const int64_t value_dim = reader.integer(kValueDim, head_dim, kCount);
  if (value_dim != head_dim) {
    fail(Code::unsupported, kOp, reader.describe(kValueDim), " is ", value_dim, " where keys have ",
         head_dim, "; only equal sizes are implemented");
  }
  return head_dim;
}

void read_head_sizes(const ConfigReader& reader, const ConfigDefaults& defaults,
                     ModelConfig& config) {
  constexpr Field kKvHeads{"attention.head_count_kv", "num_key_value_heads"};
  const bool like_heads = defaults.kv_heads == 0 || reader.is_gguf();
  config.kv_heads = reader.integer(kKvHeads, like_heads ? config.heads : defaults.kv_heads, kCount);
  check(config.heads % config.kv_heads == 0, kOp, reader.describe(kKvHeads), " is ",
        config.kv_heads, ", wanted a divisor of the ", config.heads, " heads");
  config.head_dim = read_head_dim(reader, config, defaults.head_dim);
}

constexpr Field kExperts{"expert_count",
                         "num_local_experts|num_experts|n_routed_experts|moe_num_experts"};

void refuse_unsupported(const ConfigReader& reader, const ConfigDefaults& family) {
  constexpr Field kQuantization{"", "quantization_config"};
  if (reader.has(kQuantization)) {
    const std::string method = reader.text({"", "quantization_config.quant_method"}, "unknown");
    const std::string& config = reader.checkpoint().config_json();
    const bool read = (method == "mxfp4" && family.mxfp4) ||
                      io::has_fp8_weights(config, "config.json") ||
                      io::has_float4_weights(config, "config.json") ||
                      io::has_integer_weights(config, "config.json");
    if (!read) {
      fail(Code::unsupported, kOp, "weights quantised by the method \"", method,
           "\" are not read; those of fp8, awq, gptq, modelopt, quark and compressed-tensors are; "
           "take the original weights or a GGUF file");
    }
  }
  const int64_t experts = reader.integer(kExperts, 0, {0, int64_t{1} << 20});
  if (experts > 0 && !family.experts) {
    fail(Code::unsupported, kOp, reader.describe(kExperts), " is ", experts,
         "; experts are not implemented for this architecture");
  }
}

nn::RopeScaling parse_scaling(const ConfigReader& reader, Field field) {
  // GGUF files may give a factor alone, which means linear; its neutral value is 1.
  const std::string type = reader.text(field, reader.is_gguf() ? "linear" : "default");
  if (type == "default" || type == "none") return nn::RopeScaling::none;
  if (type == "linear") return nn::RopeScaling::linear;
  if (type == "dynamic") return nn::RopeScaling::dynamic;
  if (type == "yarn") return nn::RopeScaling::yarn;
  if (type == "llama3") return nn::RopeScaling::llama3;
  if (type == "longrope" || type == "su") return nn::RopeScaling::longrope;
  fail(Code::unsupported, kOp, reader.describe(field), " is \"", type,
       "\"; known are default, linear, dynamic, yarn, llama3 and longrope");
}

// The Hugging Face spellings of a rope setting: within rope_parameters since transformers 5, and
// before that in rope_scaling.
class RopePaths {
 public:
  explicit RopePaths(std::string_view layer_kind)
      : nested_(layer_kind.empty() ? std::string("rope_parameters.")
                                   : cat("rope_parameters.", layer_kind, ".")) {}

  std::string operator()(std::string_view name) const {
    return cat(nested_, name, "|rope_scaling.", name);
  }

 private:
  std::string nested_;
};

// GGUF files scale the formula of YaRN and replace that of LongRoPE, as llama.cpp reads them.
void read_attention_factor(const ConfigReader& reader, std::string_view hf, nn::RopeOptions& rope) {
  const Field field{"rope.scaling.attn_factor", hf};
  constexpr Field kYarn{"rope.scaling.yarn_attn_factor", ""};
  if (!reader.has(field) && !reader.has(kYarn)) return;
  constexpr io::NumberRange kFactor{1e-6, 1e6};
  double factor = reader.number(field, 1.0, kFactor) * reader.number(kYarn, 1.0, kFactor);
  const bool yarn = rope.scaling == nn::RopeScaling::yarn;
  if (reader.is_gguf() && yarn && rope.factor > 1) factor *= 0.1 * std::log(rope.factor) + 1.0;
  rope.attention_factor = factor;
}

float read_norm_eps(const ConfigReader& reader, const ConfigDefaults& defaults) {
  constexpr Field kRms{"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  constexpr Field kLayer{"attention.layer_norm_epsilon",
                         "layer_norm_eps|norm_eps|layer_norm_epsilon"};
  const Field field = defaults.layer_norm ? kLayer : kRms;
  return static_cast<float>(reader.is_gguf()
                                ? reader.number(field, io::kZeroToOne)
                                : reader.number(field, defaults.norm_eps, io::kZeroToOne));
}

}  // namespace

bool is_causal(const ConfigReader& reader) {
  if (reader.architecture() == "gemma-embedding") return false;
  return reader.flag({"attention.causal", "is_causal"}, true) &&
         !reader.flag({"", "use_bidirectional_attention"}, false);
}

ModelConfig read_common(const ConfigReader& reader, const ConfigDefaults& defaults) {
  refuse_unsupported(reader, defaults);
  ModelConfig config;
  config.architecture = reader.architecture();
  if (reader.is_gguf()) {
    config.name = reader.checkpoint().metadata().get_string("general.name").value_or("");
  } else {
    config.name = reader.text({"", "_name_or_path"}, "");
  }
  config.vocab_size = read_vocab_size(reader, defaults.vocab_size);
  config.dim = read_size(reader, {"embedding_length", "hidden_size|n_embd"}, defaults.dim, kWidth);
  config.layers =
      read_size(reader, {"block_count", "num_hidden_layers|n_layer"}, defaults.layers, kCount);
  config.heads = read_size(reader, {"attention.head_count", "num_attention_heads|n_head"},
                           defaults.heads, kCount);
  if (!defaults.head_sizes) read_head_sizes(reader, defaults, config);
  constexpr Field kFfn{"feed_forward_length", "intermediate_size|n_inner"};
  if (!defaults.all_experts || reader.has(kFfn)) {
    config.ffn_dim = read_size(reader, kFfn, defaults.ffn_dim, kWidth);
  }
  config.context_length =
      read_size(reader, {"context_length", "max_position_embeddings|n_positions"},
                defaults.context_length, kPositions);
  config.norm_eps = read_norm_eps(reader, defaults);
  config.causal = is_causal(reader);
  config.tied_embeddings = reader.is_gguf()
                               ? reader.checkpoint().find("output.weight") == nullptr
                               : reader.flag({"", "tie_word_embeddings"}, defaults.tied_embeddings);
  return config;
}

ExpertCounts read_experts(const ConfigReader& reader) {
  constexpr Field kChosen{"expert_used_count", "num_experts_per_tok|moe_topk|moe_k"};
  const Limits limits{1, kMaxExperts};
  const ExpertCounts counts{.all = reader.integer(kExperts, limits),
                            .chosen = reader.integer(kChosen, limits)};
  check(counts.chosen <= counts.all, kOp, reader.describe(kChosen), " is ", counts.chosen,
        ", wanted at most the ", counts.all, " experts");
  return counts;
}

GateOp read_activation(const ConfigReader& reader, std::string_view fallback) {
  constexpr Field kActivation{"hidden_act", "hidden_activation|hidden_act"};
  const std::string name = reader.text(kActivation, fallback);
  if (name == "silu" || name == "swish") return GateOp::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") return GateOp::gelu;
  if (name == "gelu") return GateOp::gelu_erf;
  if (name == "relu") return GateOp::relu;
  fail(Code::unsupported, kOp, reader.describe(kActivation), " is \"", name,
       "\"; known are silu, gelu, gelu_pytorch_tanh and relu");
}

nn::RopeOptions read_rope(const ConfigReader& reader, const ModelConfig& config, double base,
                          std::string_view layer_kind) {
  const RopePaths hf(layer_kind);
  const auto number = [&](std::string_view gguf, std::string_view name, double fallback,
                          io::NumberRange range = io::kAboveZero) {
    return reader.number({gguf, hf(name)}, fallback, range);
  };
  nn::RopeOptions rope;
  rope.base =
      reader.number({"rope.freq_base", cat(hf("rope_theta"), "|rope_theta")}, base, kRopeBase);
  const double partial =
      reader.number({"", cat(hf("partial_rotary_factor"), "|partial_rotary_factor")}, 1.0,
                    {io::kAboveZero.lowest, 1});
  rope.rotary_dim = reader.integer(
      {"rope.dimension_count", ""},
      static_cast<int64_t>(static_cast<double>(config.head_dim) * partial), {2, config.head_dim});
  rope.scaling =
      parse_scaling(reader, {"rope.scaling.type", cat(hf("rope_type"), "|", hf("type"))});
  // Hunyuan's files say dynamic for a base that is stretched once.
  const std::string alpha_name = hf("alpha");
  const Field alpha{"", alpha_name};
  if (rope.scaling == nn::RopeScaling::dynamic && reader.has(alpha)) {
    rope.scaling = nn::RopeScaling::none;
    const auto dim = static_cast<double>(rope.rotary_dim);
    rope.base *= std::pow(reader.number(alpha, {1, 1e6}), dim / (dim - 2));
  }
  rope.trained_positions = config.context_length;
  // Phi-3 keeps it beside the rope settings, where it wins.
  rope.original_positions = reader.integer(
      {"rope.scaling.original_context_length",
       cat("original_max_position_embeddings|", hf("original_max_position_embeddings"))},
      config.context_length, kPositions);
  const double extension =
      static_cast<double>(rope.trained_positions) / static_cast<double>(rope.original_positions);
  const bool implied =
      rope.scaling == nn::RopeScaling::longrope || rope.scaling == nn::RopeScaling::yarn;
  const double alone =
      reader.number({"rope.scale_linear", ""}, implied ? extension : 1.0, io::kAboveZero);
  rope.factor = number("rope.scaling.factor", "factor", alone);
  rope.beta_fast = number("rope.scaling.yarn_beta_fast", "beta_fast", rope.beta_fast);
  rope.beta_slow = number("rope.scaling.yarn_beta_slow", "beta_slow", rope.beta_slow);
  rope.mscale = number("", "mscale", 0, kYarnScale);
  rope.mscale_all_dim = number("", "mscale_all_dim", 0, kYarnScale);
  rope.truncate = reader.flag({"", hf("truncate")}, true);
  rope.low_freq_factor = number("", "low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = number("", "high_freq_factor", rope.high_freq_factor);
  rope.short_factors = reader.numbers({"", hf("short_factor")}, io::kAboveZero);
  rope.long_factors = reader.numbers({"", hf("long_factor")}, io::kAboveZero);
  read_attention_factor(reader, hf("attention_factor"), rope);
  return rope;
}

void add_rope_tensors(nn::RopeOptions& options, const nn::WeightScope& weights) {
  const int64_t width = options.rotary_dim / 2;
  const auto divisors = [&](std::string_view name, std::vector<double>& out) {
    const nn::WeightScope scope = weights / name;
    if (!scope.has("weight")) return;
    const std::vector<float> values = scope.values("weight", width);
    out.assign(values.begin(), values.end());
  };
  divisors("rope_freqs", options.frequency_divisors);
  divisors("rope_factors_short", options.short_factors);
  divisors("rope_factors_long", options.long_factors);
}

int64_t read_window(const ConfigReader& reader, int64_t fallback) {
  constexpr Field kWindow{"attention.sliding_window", "sliding_window"};
  if (reader.is_gguf() || reader.is_null(kWindow)) fallback = 0;
  return reader.integer(kWindow, fallback, {0, int64_t{1} << 31});
}

int64_t read_causal_window(const ConfigReader& reader, const ModelConfig& config,
                           int64_t fallback) {
  const int64_t window = read_window(reader, fallback);
  if (window == 0 || config.causal) return window;
  fail(Code::unsupported, kOp, "a window of ", window, " without causal attention is not ",
       "implemented for this architecture");
}

std::vector<int64_t> layer_windows(const ConfigReader& reader, ModelConfig& config, int64_t window,
                                   const std::function<bool(int64_t)>& slides) {
  if (!config.causal && window > 0) {
    window = window / 2 + 1;
    config.reach = window;
  }
  std::vector<int64_t> windows(static_cast<size_t>(config.layers), 0);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (slides(layer)) windows[static_cast<size_t>(layer)] = window;
  }
  constexpr Field kSlides{"attention.sliding_window_pattern", ""};
  const std::vector<bool> flags = reader.flags(kSlides);
  check(flags.empty() || flags.size() == windows.size(), kOp, reader.describe(kSlides), " has ",
        flags.size(), " entries for ", windows.size(), " layers");
  for (size_t i = 0; i < flags.size(); ++i) windows[i] = flags[i] ? window : 0;
  constexpr Field kTypes{"", "layer_types"};
  const std::vector<std::string> types = reader.texts(kTypes);
  if (types.empty()) return windows;
  check(types.size() == windows.size(), kOp, reader.describe(kTypes), " has ", types.size(),
        " entries for ", windows.size(), " layers");
  for (size_t i = 0; i < types.size(); ++i) {
    const bool sliding = types[i] == "sliding_attention";
    if (!sliding && types[i] != "full_attention") {
      fail(Code::unsupported, kOp, reader.describe(kTypes), "[", i, "] is \"", types[i],
           "\"; known are full_attention and sliding_attention");
    }
    windows[i] = sliding ? window : 0;
  }
  return windows;
}

void refuse_flag(const ConfigReader& reader, Field field, bool value) {
  if (reader.flag(field, !value) != value) return;
  fail(Code::unsupported, kOp, reader.describe(field), " is ", value ? "true" : "false",
       "; that is not implemented for this architecture");
}

int64_t context_positions(const ModelConfig& config, const LoadOptions& options) {
  constexpr int64_t kDefault = 4096;
  check(options.context >= 0 && options.context <= kPositions.highest, kOp, "a context of ",
        options.context, ", wanted from 0 to ", kPositions.highest);
  if (options.context == 0) return std::min(config.context_length, kDefault);
  if (options.context > config.context_length) {
    log(LogLevel::warn, "the context is longer than the model was trained for",
        {{"context", cat(options.context)}, {"trained", cat(config.context_length)}});
  }
  return options.context;
}

}  // namespace rbee::models
