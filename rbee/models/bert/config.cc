#include "rbee/models/bert/config.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

UnaryOp read_hidden_activation(const ConfigReader& reader) {
  constexpr Field kActivation{"", "hidden_act"};
  const std::string name = reader.text(kActivation, "gelu");
  if (name == "gelu") return UnaryOp::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return UnaryOp::gelu;
  if (name == "relu") return UnaryOp::relu;
  fail(Code::unsupported, kOp, reader.describe(kActivation), " is \"", name,
       "\"; known are gelu, gelu_new and relu");
}

// GGUF files call all of them bert; the tokenizer shows which it is.
bool is_roberta(const ConfigReader& reader) {
  if (!reader.is_gguf()) return reader.architecture() != "bert";
  return reader.checkpoint().metadata().get_string("tokenizer.ggml.model").value_or("") != "bert";
}

void refuse_other_attention(const ConfigReader& reader) {
  constexpr Field kPositions{"", "position_embedding_type"};
  const std::string positions = reader.text(kPositions, "absolute");
  if (positions != "absolute") {
    fail(Code::unsupported, kOp, reader.describe(kPositions), " is \"", positions,
         "\"; only absolute is implemented");
  }
  if (reader.flag({"", "is_decoder"}, false) || reader.flag({"attention.causal", ""}, false)) {
    fail(Code::unsupported, kOp, "causal attention is not implemented for this architecture");
  }
}

}  // namespace

BertConfig read_bert_config(const ConfigReader& reader) {
  refuse_other_attention(reader);
  BertConfig config{read_common(reader, {.norm_eps = 1e-12, .layer_norm = true})};
  config.activation = read_hidden_activation(reader);
  config.roberta = is_roberta(reader);
  if (config.roberta && !reader.is_gguf()) {
    // Positions begin after that of padding.
    config.first_position = reader.integer({"", "pad_token_id"}, 1, {0, 1 << 20}) + 1;
    check(config.first_position < config.context_length, kOp, "max_position_embeddings is ",
          config.context_length, ", wanted more than the ", config.first_position,
          " that no token has");
    config.context_length -= config.first_position;
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
