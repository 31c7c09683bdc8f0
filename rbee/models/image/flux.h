#pragma once
// The denoiser of FLUX.1 (Black Forest Labs 2024) with the settings and names of diffusers'
// FluxTransformer2DModel: blocks with a text stream and a picture stream, then blocks with one
// stream of both. Rotary embeddings tell the tokens' places.

#include <array>

#include "rbee/io/json_config.h"
#include "rbee/models/image/parts.h"
#include "rbee/models/image/stream_layers.h"

namespace rbee::models {

struct FluxConfig {
  int64_t channels = 16;  // of latents; tokens are patches of two by two
  // Input channels: the latent; for Depth and Canny also a picture's latent; for Fill also the
  // masked picture's latent and the mask's pixels.
  int64_t read_channels = 16;
  int64_t double_layers = 0;
  int64_t single_layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t context_width = 4096;
  int64_t pooled_width = 768;
  bool guidance = false;                    // distilled with guidance (dev)
  std::array<int64_t, 3> axes{16, 56, 56};  // of a head, rotated by kind of token, row and column

  int64_t width() const { return heads * head_dim; }
  // Throws invalid_argument naming a field and its value.
  static FluxConfig read(const io::JsonConfig& config);
};

// Both streams attend to each other and have their own layers.
class FluxDoubleBlock {
 public:
  FluxDoubleBlock(const nn::WeightScope& scope, const FluxConfig& config);

  // Appends the picture's modulation, then the text's.
  void add_modulations(std::vector<const Modulation*>& modulations) const;
  // Replaces both streams by the block's results. Takes its modulations' results off the front.
  void operator()(Tensor& text, Tensor& picture, std::span<const std::vector<Tensor>>& modulations,
                  const StreamRotation& rotation) const;

 private:
  Modulation picture_norm_, text_norm_;
  StreamProjections picture_heads_, text_heads_;
  nn::Linear picture_out_, text_out_;
  StreamMlp picture_mlp_, text_mlp_;
};

// Attention and MLP side by side.
class FluxSingleBlock {
 public:
  FluxSingleBlock(const nn::WeightScope& scope, const FluxConfig& config);

  const Modulation& modulation() const { return norm_; }
  Tensor operator()(const Tensor& x, const std::vector<Tensor>& modulation,
                    const StreamRotation& rotation) const;

 private:
  Modulation norm_;
  StreamProjections heads_;
  nn::Linear mlp_, out_;
};

class Flux final : public Denoiser {
 public:
  Flux(const nn::WeightScope& scope, const FluxConfig& config);

  const DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override;
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const DenoiserOptions& options) const override;

 private:
  // Of `text` tokens, all at place 0, then rows times cols patches.
  StreamRotation rotation(int64_t text, int64_t rows, int64_t cols) const;

  DenoiserInfo info_;
  DType activations_;
  StreamPlaces places_;
  nn::Linear in_, context_, out_;
  StreamVector vector_;
  std::vector<FluxDoubleBlock> double_blocks_;
  std::vector<FluxSingleBlock> single_blocks_;
  Modulation out_norm_;
};

}  // namespace rbee::models
