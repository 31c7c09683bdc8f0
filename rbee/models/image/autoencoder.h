#pragma once
// The autoencoder of latent diffusion (Rombach et al. 2022, section 3.1), diffusers' AutoencoderKL.

#include "rbee/io/json_config.h"
#include "rbee/models/image/layers.h"
#include "rbee/models/image/parts.h"

namespace rbee::models {

struct AutoencoderConfig {
  std::vector<int64_t> channels;  // by level, from the full size to the smallest
  int64_t resnets = 2;            // of each level of the encoder; the decoder has one more
  int64_t latent_channels = 4;
  int64_t groups = 32;
  bool middle_attention = true;
  bool quant_conv = true;  // 1 x 1 convolutions between the two halves and the latents
  bool post_quant_conv = true;
  bool force_upcast = true;  // the weights overflow in f16
  float scaling_factor = 1;
  float shift_factor = 0;

  // Throws not_found, invalid_argument and unsupported naming the field and its value.
  static AutoencoderConfig read(const io::JsonConfig& config);
};

// Two resnets with one attention head over all pixels between them.
class AutoencoderMiddle {
 public:
  AutoencoderMiddle(const nn::WeightScope& scope, int64_t channels,
                    const AutoencoderConfig& config);

  // (batch, height, width, channels) both
  Tensor operator()(const Tensor& x, Circular circular) const;

 private:
  Tensor attend(const Tensor& x) const;

  PictureResnet before_, after_;
  bool attends_;
  nn::GroupNorm norm_;
  nn::Linear query_, key_, value_, output_;
};

// One half of the autoencoder: levels of resnets, and a convolution between levels.
class AutoencoderHalf {
 public:
  enum class Direction : uint8_t { encoder, decoder };
  AutoencoderHalf(const nn::WeightScope& scope, const AutoencoderConfig& config,
                  Direction direction);

  Tensor operator()(const Tensor& x, Circular circular, const Between& between = {}) const;

 private:
  Tensor through_levels(Tensor x, Circular circular, const Between& between) const;

  Direction direction_;
  nn::Conv2d in_, out_;
  nn::GroupNorm out_norm_;
  std::vector<std::vector<PictureResnet>> levels_;
  std::vector<nn::Conv2d> resamplers_;  // one less than levels
  std::unique_ptr<AutoencoderMiddle> middle_;
};

class Autoencoder final : public Vae {
 public:
  // A checkpoint without "encoder." has only a decoder.
  Autoencoder(const nn::WeightScope& scope, const AutoencoderConfig& config);

  const VaeInfo& info() const override { return info_; }
  LatentDistribution encode(const Tensor& image, Circular circular) const override;
  Tensor decode(const Tensor& latent, const Between& between, Circular circular) const override;

 private:
  VaeInfo info_;
  DType activations_;
  std::unique_ptr<AutoencoderHalf> encoder_, decoder_;
  nn::Conv2d quant_, post_quant_;
};

}  // namespace rbee::models
