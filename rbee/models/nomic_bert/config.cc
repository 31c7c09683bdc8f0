#include "rbee/models/nomic_bert/config.h"

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
  for (const char* name : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm",
                           "use_rms_norm", "parallel_block", "rotary_emb_interleaved", "causal"}) {
    refuse(reader, {"", name}, reader.flag({"", name}, false), "false");
  }
  constexpr Field kFraction{"", "rotary_emb_fraction"}, kScaleBase{"", "rotary_emb_scale_base"};
  refuse(reader, kFraction, reader.number(kFraction, 1.0) != 1.0, "1");
  refuse(reader, kScaleBase, reader.has(kScaleBase), "null");
  constexpr Field kExperts{"moe_every_n_layers", "moe_every_n_layers"};
  refuse(reader, kExperts, reader.integer(kExperts, 0, {0, int64_t{1} << 14}) != 0, "0");
}

GateOp read_gate(const ConfigReader& reader) {
  constexpr Field kPublished{"", "activation_function"};
  const std::string name = reader.text(kPublished, "");
  if (name.empty()) return read_activation(reader, "silu");
  if (name == "swiglu") return GateOp::silu;
  if (name == "geglu") return GateOp::gelu_erf;
  fail(Code::unsupported, kOp, reader.describe(kPublished), " is \"", name,
       "\"; known are swiglu and geglu");
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
                                              .layer_norm = true})};
  refuse_other_shapes(reader);
  config.causal = false;
  config.activation = read_gate(reader);
  config.rope = read_rope(reader, config, reader.number({"", "rotary_emb_base"}, 1000));
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
