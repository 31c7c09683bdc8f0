#pragma once
// Layers of diffusion transformers with a text stream and a picture stream (Esser et al. 2024,
// section 4), Stable Diffusion 3's and FLUX's, or with one of both, Z-Image's. Streams are (batch,
// tokens, width).

#include <array>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "rbee/models/image/layers.h"
#include "rbee/models/image/parts.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

// Computes a block's modulation from the vector of time step and prompt: `parts` rows of the width
// for each sample, which scale and shift norms and weight results.
class Modulation {
 public:
  Modulation() = default;
  // Takes "linear" of the scope.
  Modulation(const nn::WeightScope& scope, int64_t width, int64_t parts);

  const LinearWeights& weights() const { return linear_.weights(); }
  // all: (batch, parts * width) of weights()   result: `parts` tensors of (batch, width)
  std::vector<Tensor> split(const Tensor& all) const;

 private:
  int64_t parts_ = 0;
  nn::Linear linear_;
};

// The modulations of one vector, silu of (batch, width), computed together.
std::vector<std::vector<Tensor>> modulate(const Tensor& vector,
                                          std::span<const Modulation* const> modulations);
// Takes the first off the front of the list.
const std::vector<Tensor>& next_modulation(std::span<const std::vector<Tensor>>& modulations);

// layer_norm(x) * (1 + scale) + shift; scale, shift: (batch, width)
Tensor modulated_norm(const Tensor& x, const Tensor& shift, const Tensor& scale);
// x + gate * y; gate: (batch, width)
Tensor gated_sum(const Tensor& x, const Tensor& gate, const Tensor& y);

// Linear, GELU (tanh), linear.
class StreamMlp {
 public:
  StreamMlp() = default;
  // Takes net.0.proj and net.2.
  StreamMlp(const nn::WeightScope& scope, int64_t width, int64_t inner);

  Tensor operator()(const Tensor& x) const;

 private:
  nn::Linear up_, down_;
};

// Queries, keys and values, (batch, tokens, heads, head_dim) each.
struct StreamHeads {
  Tensor query, key, value;
};

inline constexpr float kStreamNormEps = 1e-6f;

struct StreamHeadsSpec {
  // Names of the layers, as diffusers has them.
  const char *query = "to_q", *key = "to_k", *value = "to_v";
  const char *query_norm = "norm_q", *key_norm = "norm_k";
  int64_t width = 0;
  int64_t heads = 0;
  bool norms = false;  // an RMS norm over each head's query and key
  float norm_eps = kStreamNormEps;
  nn::Bias bias = nn::Bias::required;
};

// A stream's share of an attention.
class StreamProjections {
 public:
  StreamProjections() = default;
  StreamProjections(const nn::WeightScope& scope, const StreamHeadsSpec& spec);

  StreamHeads operator()(const Tensor& x) const;

 private:
  int64_t heads_ = 0;
  nn::Linear query_, key_, value_;
  nn::RmsNorm query_norm_, key_norm_;
};
// The layer names of the text stream.
StreamHeadsSpec text_heads(StreamHeadsSpec picture);

// Tables of rotary embeddings for the tokens' places, (tokens, head_dim / 2) f32 each.
struct StreamRotation {
  Tensor cos, sin;
};

// Makes the tables of places with three coordinates, each of which turns a part of a head. Keeps
// the last ones. Several pictures may ask at once.
class StreamPlaces {
 public:
  using Place = std::array<int64_t, 3>;
  // axes: numbers of a head that a coordinate turns; theta: the base of the frequencies
  StreamPlaces(const std::array<int64_t, 3>& axes, double theta, Device& device)
      : axes_(axes), theta_(theta), device_(&device) {}

  // `key` tells lists apart; `places` makes the list if there is no table of it.
  StreamRotation operator()(const Place& key,
                            const std::function<std::vector<Place>()>& places) const;

 private:
  StreamRotation compute(const std::vector<Place>& places) const;

  std::array<int64_t, 3> axes_;
  double theta_;
  Device* device_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Place, StreamRotation>> kept_;  // last used at the end
};

// Attention of all streams over all of them, tokens of the first stream first; (batch, tokens,
// heads * head_dim).
Tensor stream_attention(std::span<const StreamHeads> streams, const StreamRotation* rotation);

// The vector of the time step, the pooled prompt and, in models distilled with guidance, the
// guidance.
class StreamVector {
 public:
  StreamVector() = default;
  // Takes timestep_embedder, text_embedder and, with guidance, guidance_embedder.
  StreamVector(const nn::WeightScope& scope, int64_t pooled_width, int64_t width, bool guidance);

  // The part that does not depend on the time step, (batch, width).
  Tensor prepare(const TextStates& text) const;
  // silu of the sum; timesteps: (batch) f32, 0 ... 1000
  Tensor operator()(const Tensor& timesteps, const Tensor& prepared) const;

 private:
  Tensor embed(const VectorMlp& mlp, const Tensor& values) const;

  Tensor frequencies_;
  VectorMlp time_, text_, guidance_;
};

// What both models compute once for a prompt.
struct StreamPrompt final : Conditioning {
  Tensor context;  // (batch, tokens, width): the stream of text before the first block
  Tensor vector;   // of StreamVector::prepare
  int64_t batch = 0;

  std::unique_ptr<Conditioning> clone() const override {
    return std::make_unique<StreamPrompt>(*this);
  }
  std::vector<Tensor*> tensors() override { return {&context, &vector}; }
};

// Makes a StreamPrompt; `context` brings the text's states to the stream's width. Throws
// invalid_argument naming a tensor of the prompt that does not fit the model.
std::unique_ptr<Conditioning> prepare_stream(const char* op, const DenoiserInfo& info,
                                             const TextStates& text, const nn::Linear& context,
                                             const StreamVector& vector, DType activations);
// Throws invalid_argument if x or the time steps do not fit a prompt of this batch, or x does not
// fit the patches.
void check_stream_input(const char* op, const DenoiserInfo& info, const Tensor& x,
                        const Tensor& timesteps, int64_t batch);
// The conditioning as the StreamPrompt of prepare(). Throws invalid_argument if it is another
// denoiser's, and as check_stream_input().
const StreamPrompt& check_stream_call(const char* op, const DenoiserInfo& info, const Tensor& x,
                                      const Tensor& timesteps, const Conditioning& conditioning);

}  // namespace rbee::models
