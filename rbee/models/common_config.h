#pragma once
// Reads and checks the settings that every family has.

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

// A family's defaults for settings that a Hugging Face config leaves out. 0 = the setting is
// required (kv_heads: the number of heads; head_dim: dim / heads).
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
  bool experts = false;      // the family has layers of experts, see read_experts()
  bool all_experts = false;  // no layer has another feed-forward network; ffn_dim may be left out
  bool mxfp4 = false;        // the family reads quantization_config's mxfp4
  bool head_sizes = false;   // the family sets head_dim and kv_heads itself
  bool layer_norm = false;   // norm_eps is of layer norms, which have names of their own
};

// Throws as ConfigReader does, and invalid_argument for sizes that contradict each other.
ModelConfig read_common(const ConfigReader& reader, const ConfigDefaults& defaults);

// Whether tokens see only earlier tokens. True but for some models for embeddings.
bool is_causal(const ConfigReader& reader);

// The number of experts of a layer, and how many of them a token takes.
struct ExpertCounts {
  int64_t all = 0;
  int64_t chosen = 0;
};
// Throws as ConfigReader does, and invalid_argument if a token takes more experts than there are.
ExpertCounts read_experts(const ConfigReader& reader);

// The gate's activation by its Hugging Face name ("hidden_act" or "hidden_activation"); GGUF files
// without it mean `fallback`. Throws unsupported for an unknown name.
GateOp read_activation(const ConfigReader& reader, std::string_view fallback);

inline constexpr io::NumberRange kRopeBase{.lowest = 1};
// Of what the logarithm of YaRN's extension is multiplied by.
inline constexpr io::NumberRange kYarnScale{.lowest = 0, .highest = 1000};

// Rope settings of `layer_kind` (an object within rope_parameters, e.g. "full_attention"; empty =
// the flat form). `base` is the family's default.
nn::RopeOptions read_rope(const ConfigReader& reader, const ModelConfig& config, double base,
                          std::string_view layer_kind = {});
// Adds the per-frequency divisors that GGUF files keep as tensors.
void add_rope_tensors(nn::RopeOptions& options, const nn::WeightScope& weights);

// The attention window of the config, 0 = none; `fallback` if a Hugging Face config leaves it out.
int64_t read_window(const ConfigReader& reader, int64_t fallback);
// The same for families that have only causal models; throws unsupported for a bidirectional one.
int64_t read_causal_window(const ConfigReader& reader, const ModelConfig& config, int64_t fallback);
// The number of keys that each layer sees: `window` if the layer has one, else 0 for all. If the
// checkpoint lists its layers, the list wins over the family's rule `slides`. For a bidirectional
// model, `window` counts both sides without the token itself; the result counts one side with it,
// and config.reach is set.
std::vector<int64_t> layer_windows(const ConfigReader& reader, ModelConfig& config, int64_t window,
                                   const std::function<bool(int64_t)>& slides);

// Throws unsupported naming a switch of a Hugging Face config if it is there with this value.
void refuse_flag(const ConfigReader& reader, Field field, bool value);

// Positions to prepare rope tables for.
int64_t context_positions(const ModelConfig& config, const LoadOptions& options);

}  // namespace rbee::models
