#include "rbee/models/gemma/config.h"

namespace rbee::models {

GemmaConfig read_gemma_config(const ConfigReader& reader) {
  GemmaConfig config{read_common(reader, {.vocab_size = 256000,
                                          .dim = 3072,
                                          .layers = 28,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .head_dim = 256,
                                          .ffn_dim = 24576,
                                          .context_length = 8192,
                                          .tied_embeddings = true})};
  config.activation = read_activation(reader, "gelu_pytorch_tanh");
  // The first configs say "gelu" and mean the form that the models were trained with.
  if (config.activation == GateOp::gelu_erf) config.activation = GateOp::gelu;
  config.rope = read_rope(reader, config, 10000);
  config.norm_weight_offset = reader.is_gguf() ? 0.0f : 1.0f;
  return config;
}

}  // namespace rbee::models
