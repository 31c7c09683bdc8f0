#pragma once
// Settings that every family has, read and checked in one place.

#include <functional>
#include <string_view>
#include <vector>

#include "backends/api/args_elementwise.h"
#include "rbee/models/config_reader.h"
#include "rbee/models/language_model.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/rope.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

// What a family takes for settings that a Hugging Face config leaves out; 0 = the setting is
// required (kv_heads: as many as heads; head_dim: dim / heads).
struct ConfigDefaults {
  int64_t vocab_size = 0;
  int64_t dim = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;
  int64_t context_length = 0;
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
  bool experts = false;     // the family has layers of experts, see read_experts()
  bool mxfp4 = false;       // the family reads quantization_config's mxfp4
  bool head_sizes = false;  // the family sets head_dim and kv_heads itself
  bool layer_norm = false;  // norm_eps is of layer norms, which have names of their own
};

// Throws as ConfigReader does, and invalid_argument for sizes that contradict each other.
ModelConfig read_common(const ConfigReader& reader, const ConfigDefaults& defaults);

// Whether tokens see only what comes before them, as all do but those of some models for
// embeddings.
bool is_causal(const ConfigReader& reader);

// How many experts a layer has, and how many of them a token takes.
struct ExpertCounts {
  int64_t all = 0;
  int64_t chosen = 0;
};
// Throws as ConfigReader does, and invalid_argument where more are chosen than there are.
ExpertCounts read_experts(const ConfigReader& reader);

// The gate's activation by its Hugging Face name ("hidden_act" or "hidden_activation"); GGUF files
// that do not say take `fallback`. Throws unsupported for another.
GateOp read_activation(const ConfigReader& reader, std::string_view fallback);

// Rope settings of `layer_kind` (an object within rope_parameters, e.g. "full_attention"; empty =
// the flat form). `base` is the family's default.
nn::RopeOptions read_rope(const ConfigReader& reader, const ModelConfig& config, double base,
                          std::string_view layer_kind = {});
// Adds the per-frequency divisors that GGUF files keep as tensors.
void add_rope_tensors(nn::RopeOptions& options, const nn::WeightScope& weights);

// The attention window of the config, 0 = none; `fallback` when a Hugging Face config leaves it
// out.
int64_t read_window(const ConfigReader& reader, int64_t fallback);
// The same for families without models that see both ways; throws unsupported for one that has.
int64_t read_causal_window(const ConfigReader& reader, const ModelConfig& config, int64_t fallback);
// Keys seen by each layer: `window` where it slides, 0 = all elsewhere. The checkpoint's own list
// of layers wins over the family's rule `slides`. Of models that see both ways `window` is the sum
// of both sides without the token; the result has one side with it, and sets config.reach.
std::vector<int64_t> layer_windows(const ConfigReader& reader, ModelConfig& config, int64_t window,
                                   const std::function<bool(int64_t)>& slides);

// Positions to prepare rope tables for.
int64_t context_positions(const ModelConfig& config, const LoadOptions& options);

}  // namespace rbee::models
