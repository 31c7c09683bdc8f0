#pragma once
// The denoiser of Z-Image (Cai et al. 2025) with the settings and names of diffusers'
// ZImageTransformer2DModel: blocks for the picture alone, blocks for the text alone, then blocks
// for both as one sequence. The time step scales norms and weighs results by tanh; nothing is
// shifted.

#include <algorithm>
#include <array>

#include "rbee/io/json_config.h"
#include "rbee/models/image/parts.h"
#include "rbee/models/image/stream_layers.h"

namespace rbee::models {

struct ZImageConfig {
  int64_t channels = 16;  // of latents; tokens are patches of two by two
  int64_t width = 0;
  int64_t layers = 0;
  int64_t refiner_layers = 0;  // for the picture alone, and as many for the text alone
  int64_t heads = 0;
  int64_t context_width = 2560;
  float norm_eps = 1e-5f;
  bool query_norms = true;
  double time_scale = 1000;
  double theta = 256;
  std::array<int64_t, 3> axes{32, 48, 48};  // of a head, rotated by place in the text, row, column

  int64_t time_width() const { return std::min<int64_t>(width, 256); }
  int64_t ffn_width() const { return static_cast<int64_t>(static_cast<double>(width) / 3 * 8); }
  // Throws invalid_argument naming a field and its value, and unsupported for models that read
  // pictures besides (siglip_feat_dim) and for other patches.
  static ZImageConfig read(const io::JsonConfig& config);
};

class ZImageBlock {
 public:
  // `modulated`: the time step acts on it.
  ZImageBlock(const nn::WeightScope& scope, const ZImageConfig& config, bool modulated);

  // Of the time vector, (batch, time width), to (batch, 4 * width): scale and weight of the
  // attention, scale and weight of the MLP.
  const LinearWeights& modulation() const { return modulation_.weights(); }
  // `modulation`: its result; undefined for a block without.
  Tensor operator()(const Tensor& x, const Tensor& modulation,
                    const StreamRotation& rotation) const;

 private:
  Tensor attend(const Tensor& x, const Tensor& scale, const StreamRotation& rotation) const;
  Tensor multiply(const Tensor& x, const Tensor& scale) const;

  float eps_;
  // Norms' weights, (width): before and after the attention, before and after the MLP.
  Tensor attention_in_, attention_out_, mlp_in_, mlp_out_;
  StreamProjections heads_;
  nn::Linear out_, gate_, up_, down_, modulation_;
};

class ZImage final : public Denoiser {
 public:
  ZImage(const nn::WeightScope& scope, const ZImageConfig& config);

  const DenoiserInfo& info() const override { return info_; }
  // Reads text.tokens. The blocks of the text run here.
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override;
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const DenoiserOptions& options) const override;

 private:
  // Of a picture of rows times cols patches, then `tokens` tokens of text.
  StreamRotation rotation(int64_t tokens, int64_t rows, int64_t cols) const;
  // Prompts of one number of tokens; captions: (batch, tokens, width).
  Tensor denoise(const Tensor& x, const Tensor& timesteps, const Tensor& captions) const;
  Tensor embed_time(const Tensor& timesteps) const;

  DenoiserInfo info_;
  DType activations_;
  double time_scale_;
  float eps_;
  StreamPlaces places_;
  Tensor frequencies_;
  nn::Linear time_in_, time_out_, in_, context_, out_scale_, out_;
  Tensor context_norm_;               // (context_width)
  Tensor picture_padding_, padding_;  // (1, 1, width): tokens of the picture, of the text
  std::vector<ZImageBlock> picture_blocks_, text_blocks_, blocks_;
};

}  // namespace rbee::models
