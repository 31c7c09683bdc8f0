#pragma once
// The interfaces of an image model's parts, for all families. All tensors that cross them are f32,
// contiguous and on the model's device; pictures and latents have their channels last. Parts do not
// change after loading and may serve several pictures at once.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rbee/ops/image.h"
#include "rbee/tensor/tensor.h"

namespace rbee::models {

// One text encoder's results for a batch of prompts.
struct TextEncoding {
  Tensor hidden;  // (batch, tokens, width): the states that the denoiser reads
  Tensor pooled;  // (batch, pooled_width), or undefined if the encoder has none
};

// A vector that replaces a token's embedding (textual inversion, Gal et al. 2022).
struct TokenVector {
  int64_t at = 0;              // index into ids
  std::span<const float> row;  // (width)
};

struct TextInput {
  std::span<const int32_t> ids;  // (batch * tokens), each prompt padded to the same length
  int64_t batch = 1;
  // The n-th last layer's states; 0 = the layer that the model was trained with.
  int64_t clip_skip = 0;
  std::span<const TokenVector> vectors = {};
};

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Throws invalid_argument naming an id outside the vocabulary, a length that is not a multiple of
  // the batch or above max_tokens(), or a clip_skip beyond the layers.
  virtual TextEncoding operator()(const TextInput& input) const = 0;

  virtual int64_t width() const = 0;
  virtual int64_t pooled_width() const = 0;  // 0 = none
  virtual int64_t max_tokens() const = 0;    // 77 for CLIP
  virtual int64_t vocab_size() const = 0;
  virtual int64_t layers() const = 0;
};

// A denoiser's input for a batch of prompts.
struct TextStates {
  Tensor context;  // (batch, tokens, context_width)
  Tensor pooled;   // (batch, pooled_width) if the denoiser reads it
  // SDXL: (batch, 6) original height, width, crop top, left, target height, width, in pixels; the
  // refiner: (batch, 5), the first four and the aesthetic score.
  Tensor size_ids;
  // Distilled guidance, if the denoiser reads it: FLUX dev's scale, or LCM's scale minus one;
  // (batch).
  Tensor guidance;
  // Of a language model's states: each prompt's tokens, the context's others are no text; empty:
  // all are text.
  std::vector<int64_t> tokens = {};
};

// The result of prepare(), computed once for a prompt. Only the denoiser that made it can read it.
class Conditioning {
 public:
  virtual ~Conditioning() = default;
  // A copy that shares the tensors.
  virtual std::unique_ptr<Conditioning> clone() const = 0;
  // All tensors that the denoiser reads, always in the same order, and of the same shapes for texts
  // of one length and batch. Some may be undefined.
  virtual std::vector<Tensor*> tensors() = 0;
};

// Additions of a ControlNet (Zhang et al. 2023) to the skips and the middle of a UNet, channels
// last, already scaled.
struct ControlStates {
  std::vector<Tensor> skips;
  Tensor middle;
};

struct DenoiserInfo {
  // Of latents with 4: 4; 9: latent, mask, masked picture's latent; 8: latent, picture's. Of FLUX's
  // with 16: 16; 32: latent, picture's; 96: latent, masked picture's, the mask's 8 x 8 pixels.
  int64_t in_channels = 4;
  int64_t out_channels = 4;  // latent channels
  int64_t context_width = 0;
  int64_t pooled_width = 0;  // 0: TextStates::pooled is not read
  int64_t size_ids = 0;      // numbers a sample in TextStates::size_ids; 0: not read
  bool guidance = false;     // TextStates::guidance is read
  int64_t patch = 1;         // height and width of x are multiples of it
  int64_t sample_size = 0;   // latent height and width in training; 0 = unknown
  bool circular = false;     // DenoiserOptions::circular can be had

  // Channels of a mask that is read besides two latents; 0: none.
  int64_t mask_channels() const { return std::max<int64_t>(in_channels - 2 * out_channels, 0); }
};

struct DenoiserOptions {
  const ControlStates* control = nullptr;  // of UNets
  Circular circular = {};                  // of x
};

class Denoiser {
 public:
  virtual ~Denoiser() = default;

  virtual const DenoiserInfo& info() const = 0;
  // Throws invalid_argument naming a tensor that is missing or of a wrong shape.
  virtual std::unique_ptr<Conditioning> prepare(const TextStates& text) const = 0;
  // x: (batch, height, width, in_channels)   timesteps: (batch), 0 ... 1000, fractions allowed
  // result: (batch, height, width, out_channels): noise, velocity or flow, as the model was
  // trained. The conditioning's batch is x's.
  virtual Tensor operator()(const Tensor& x, const Tensor& timesteps,
                            const Conditioning& conditioning,
                            const DenoiserOptions& options = {}) const = 0;
};

struct VaeInfo {
  int64_t latent_channels = 4;
  int64_t scale = 8;  // pixels to a latent along height and width
  // Denoisers read (z - shift_factor) * scaling_factor for an encoder's z.
  float scaling_factor = 1;
  float shift_factor = 0;
};

// A normal distribution of latents, (batch, height, width, latent_channels) each.
struct LatentDistribution {
  Tensor mean;
  Tensor log_variance;  // within [-30, 20]; undefined: the encoder is deterministic
};

// A long call calls this between its blocks; it may throw to end the call.
using Between = std::function<void()>;

class Vae {
 public:
  virtual ~Vae() = default;

  virtual const VaeInfo& info() const = 0;
  // image: (batch, height, width, 3) in [-1, 1], sizes multiples of info().scale. Throws
  // unsupported if the checkpoint has only a decoder.
  virtual LatentDistribution encode(const Tensor& image, Circular circular = {}) const = 0;
  // latent: (batch, height, width, latent_channels), unscaled (see VaeInfo); result: (batch, height
  // * scale, width * scale, 3), about [-1, 1], not clamped.
  virtual Tensor decode(const Tensor& latent, const Between& between = {},
                        Circular circular = {}) const = 0;
};

}  // namespace rbee::models
