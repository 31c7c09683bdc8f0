#include "rbee/models/nomic_bert/config.h"

#include "backends/api/args_experts.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

void refuse(const ConfigReader& reader, const Field& field, bool wrong, std::string_view known) {
  if (wrong) {
    fail(Code::unsupported, kOp, reader.describe(field), " is not implemented for this ",
         "architecture but as ", known);
  }
}

// Settings of the published code that no known embedding model of this shape changes.
void refuse_other_shapes(const ConfigReader& reader) {
  for (const char* name : {"prenorm", "use_rms_norm", "parallel_block", "rotary_emb_interleaved",
                           "causal", "expert_choice_router", "moe_normalize_expert_weights"}) {
    refuse(reader, {"", name}, reader.flag({"", name}, false), "false");
  }
  constexpr Field kFraction{"", "rotary_emb_fraction"}, kScaleBase{"", "rotary_emb_scale_base"};
  refuse(reader, kFraction, reader.number(kFraction, 1.0, {}) != 1.0, "1");
  refuse(reader, kScaleBase, reader.has(kScaleBase), "null");
  constexpr Field kShared{"", "num_shared_experts"}, kDivisor{"", "ffn_div"};
  refuse(reader, kShared, reader.integer(kShared, 0, {0, 1 << 10}) != 0, "0");
  refuse(reader, kDivisor, reader.integer(kDivisor, 1, {1, 1 << 10}) != 1, "1");
}

// The published code's names, and those of transformers, whose MLPs all have a gate. GGUF files say
// it by their architecture.
void read_feed_forward(const ConfigReader& reader, NomicBertConfig& config) {
  if (reader.is_gguf() && reader.architecture() == "nomic-bert-moe") {
    config.gated = false;
    return;
  }
  constexpr Field kPublished{"", "activation_function"};
  const std::string name = reader.text(kPublished, "");
  if (name.empty()) {
    config.activation = read_activation(reader, "silu");
  } else if (name == "swiglu" || name == "geglu") {
    config.activation = name == "swiglu" ? GateOp::silu : GateOp::gelu_erf;
  } else if (name == "gelu" || name == "gelu_new" || name == "gelu_fast" ||
             name == "gelu_pytorch_tanh") {
    config.gated = false;
    config.plain_activation = name == "gelu" ? UnaryOp::gelu_erf : UnaryOp::gelu;
  } else {
    fail(Code::unsupported, kOp, reader.describe(kPublished), " is \"", name,
         "\"; known are swiglu, geglu, gelu, gelu_new, gelu_fast and gelu_pytorch_tanh");
  }
}

// GGUF files say it by the tensors that they have.
void read_biases(const ConfigReader& reader, NomicBertConfig& config) {
  const auto read = [&](const char* name) {
    if (reader.is_gguf()) return nn::Bias::optional;
    return reader.flag({"", name}, false) ? nn::Bias::required : nn::Bias::none;
  };
  config.attention_bias = read("qkv_proj_bias");
  config.up_bias = read("mlp_fc1_bias");
  config.down_bias = read("mlp_fc2_bias");
  for (const char* name : {"mlp_fc1_bias", "mlp_fc2_bias"}) {
    const Field field{"", name};
    refuse(reader, field, config.gated && reader.flag(field, false), "false beside a gate");
  }
}

void read_layers_of_experts(const ConfigReader& reader, NomicBertConfig& config) {
  constexpr Field kPeriod{"moe_every_n_layers", "moe_every_n_layers"};
  constexpr Field kExperts{"expert_count", "num_experts"};
  constexpr Field kChosen{"expert_used_count", "moe_top_k"};
  config.expert_period = reader.integer(kPeriod, 0, {0, int64_t{1} << 14});
  if (config.expert_period == 0) return;
  if (config.expert_period == 1 || config.gated) {
    fail(Code::unsupported, kOp, reader.describe(kPeriod), " is ", config.expert_period,
         config.gated ? " beside MLPs with a gate" : "",
         "; known are 0, and from 2 on without gates");
  }
  config.experts = reader.integer(kExperts, {1, kMaxExperts});
  config.chosen_experts = reader.integer(kChosen, {1, config.experts});
}

}  // namespace

NomicBertConfig read_nomic_bert_config(const ConfigReader& reader) {
  NomicBertConfig config{read_common(reader, {.vocab_size = 30528,
                                              .dim = 768,
                                              .layers = 12,
                                              .heads = 12,
                                              .ffn_dim = 3072,
                                              .context_length = 2048,
                                              .norm_eps = 1e-12,
                                              .experts = true,
                                              .layer_norm = true})};
  refuse_other_shapes(reader);
  config.causal = false;
  read_feed_forward(reader, config);
  read_biases(reader, config);
  read_layers_of_experts(reader, config);
  config.rope = read_rope(reader, config, reader.number({"", "rotary_emb_base"}, 1000, kRopeBase));
  // A factor stretches the rope for texts beyond the trained ones, each by its own length.
  constexpr Field kStretch{"", "rotary_scaling_factor"};
  if (reader.has(kStretch)) {
    config.context_length =
        reader.integer({"", "max_trained_positions"}, 2048, {1, config.context_length});
  }
  if (reader.is_gguf()) {
    const io::TensorEntry* table = reader.checkpoint().find("token_types.weight");
    config.segments = table == nullptr ? 0 : table->shape[0];
  } else {
    config.segments = reader.integer({"", "type_vocab_size"}, 2, {0, 1 << 10});
  }
  return config;
}

}  // namespace rbee::models
