#pragma once
// A Hugging Face model's settings in the form that its family has in GGUF files.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/models/common_config.h"
#include "rbee/models/language_model.h"
#include "rbee/nn/rope.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

struct GgufForm {
  std::string architecture;  // the family's, e.g. "llama" for Mistral
  models::ModelConfig config;
  nn::RopeOptions rope;                    // of layers that see all
  std::optional<double> local_rope_base;   // Gemma 3: of layers with a window
  std::optional<float> attention_softcap;  // Gemma 2; 0 = off
  std::optional<float> logit_softcap;      // Gemma; 0 = off
  std::vector<int64_t> windows;            // keys a token sees, by layer; 0 = all
  std::vector<int64_t> usual_windows;      // what readers take when the file has the size only
  bool paired_rows = false;                // q and k as rope's interleaved layout wants them
  std::vector<std::pair<std::string_view, float>> scales;  // Granite: keys and values of its own
  float norm_offset = 0;                                   // Gemma's norms are stored less one
  // Readers take the scale of the scores from the sizes; what it differs by goes into this weight.
  float query_scale = 1;
  std::string_view query_weight;  // "attn_q" or "attn_q_norm"
  std::optional<models::ExpertCounts> experts;
  std::vector<std::pair<std::string_view, int64_t>> sizes;  // of experts: keys and values
  std::optional<bool> normalises;        // whether the chosen experts' weights add up to one
  std::vector<bool> sparse;              // by layer: with experts, not one MLP; empty: see `absent`
  bool layer_norm = false;               // norms are layer norms, else RMS norms
  std::vector<std::string_view> absent;  // rows of the family's tensor names that a model lacks
};

// Throws what loading the model would throw about its settings, and unsupported naming a setting
// that GGUF files of the family cannot hold.
GgufForm read_gguf_form(const io::Checkpoint& checkpoint);

// Sets general.architecture and the keys of the architecture.
void set_model_keys(const GgufForm& form, io::GgufWriter& writer);

// Sets the keys of rope; returns the tensors of divisors that belong to them. Throws unsupported
// for a scaling that GGUF files cannot hold.
std::vector<SourceTensor> set_rope_keys(const GgufForm& form, io::GgufWriter& writer);

// What happens to the tensor of this GGUF name.
RowEdit edit_of(const GgufForm& form, std::string_view name);

}  // namespace rbee::tools
