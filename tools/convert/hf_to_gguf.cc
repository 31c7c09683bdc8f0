#include "tools/convert/hf_to_gguf.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/engine/text/generation_config.h"
#include "rbee/models/embedding_model.h"
#include "rbee/text/tokenizer.h"
#include "tools/convert/encoder_form.h"
#include "tools/convert/gguf_form.h"
#include "tools/convert/gguf_names.h"
#include "tools/convert/vocab_keys.h"

namespace rbee::tools {
namespace {

// Readers know Phi-3's special tokens by the model's name.
std::string name_for(std::string name, bool special_takes_space) {
  if (text::is_named_phi3(name) == special_takes_space) return name;
  if (special_takes_space) return cat("Phi-3 ", name);
  log(LogLevel::warn, "readers will take the white space after special tokens, as in Phi-3",
      {{"name", name}});
  return name;
}

// What requests that say nothing get.
void set_sampling_keys(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const auto text = checkpoint.text_file("generation_config.json");
  if (!text) return;
  namespace keys = engine::gguf_sampling;
  const engine::SamplingDefaults defaults = engine::sampling_defaults(*text);
  const auto set = [&](const char* key, const std::optional<float>& value) {
    if (value) writer.set_f32(key, *value);
  };
  set(keys::kTemperature, defaults.temperature);
  set(keys::kTopP, defaults.top_p);
  set(keys::kMinP, defaults.min_p);
  set(keys::kRepetitionPenalty, defaults.repetition_penalty);
  if (defaults.top_k) writer.set_i32(keys::kTopK, *defaults.top_k);
}

ModelTensors decoder_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const GgufForm form = read_gguf_form(checkpoint);
  std::vector<SourceTensor> tensors = gguf_tensors(checkpoint, form);
  set_model_keys(form, writer);
  Keys keys(form.architecture, writer);
  set_decoder_pooling(checkpoint, keys);
  std::ranges::move(set_rope_keys(form, writer), std::back_inserter(tensors));
  set_sampling_keys(checkpoint, writer);
  return {form.config, std::move(tensors)};
}

}  // namespace

std::vector<SourceTensor> hf_to_gguf(const io::Checkpoint& checkpoint,
                                     const HfToGgufOptions& options, io::GgufWriter& writer) {
  const bool encoder = models::is_encoder(checkpoint.architecture());
  ModelTensors model =
      encoder ? encoder_to_gguf(checkpoint, writer) : decoder_to_gguf(checkpoint, writer);
  const models::ModelConfig& config = model.config;
  const io::TensorEntry& table = model.tensors.front().stored;
  check(table.shape == Shape{config.vocab_size, config.dim}, "convert", "the token table is (",
        table.shape, "), config.json wants (", config.vocab_size, ", ", config.dim, ")");
  std::string name = config.name.empty() ? options.name : config.name;
  if (options.vocabulary) {
    name = name_for(std::move(name), set_vocab_keys(checkpoint, config.vocab_size, writer));
  }
  writer.set_string("general.type", "model");
  writer.set_string("general.name", name);
  return std::move(model.tensors);
}

}  // namespace rbee::tools
