#pragma once
// TAESD (Bohan 2023), diffusers' AutoencoderTiny: an autoencoder with a fortieth of the weights of
// latent diffusion's. For previews and quick pictures.

#include <filesystem>

#include "rbee/io/json_config.h"
#include "rbee/models/image/image_model.h"
#include "rbee/nn/conv2d.h"

namespace rbee::models {

struct TinyAutoencoderConfig {
  std::vector<int64_t> encoder_blocks, decoder_blocks;  // residual blocks by level
  int64_t width = 64;                                   // of all levels
  int64_t latent_channels = 4;
  float scaling_factor = 1;
  float shift_factor = 0;

  // Throws invalid_argument and unsupported naming the field and its value.
  static TinyAutoencoderConfig read(const io::JsonConfig& config);
};

// A chain of convolutions and residual blocks, numbered one after another in the checkpoint.
class TinyHalf {
 public:
  TinyHalf() = default;
  static TinyHalf encoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config);
  static TinyHalf decoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config);

  bool defined() const { return !steps_.empty(); }
  Tensor operator()(const Tensor& x, Circular circular, const Between& between = {}) const;

 private:
  enum class Kind : uint8_t { conv, relu_conv, halving, doubling, block };
  struct Step {
    Kind kind;
    nn::Conv2d first, second, third;  // a plain convolution has only the first
  };
  void add_conv(const nn::WeightScope& scope, Kind kind, const nn::Conv2dShape& shape);
  void add_blocks(const nn::WeightScope& scope, int64_t count, int64_t width);
  static Tensor run(const Step& step, const Tensor& x, Circular circular);

  std::vector<Step> steps_;
  int64_t next_ = 0;  // number of the next layer in the checkpoint
};

class TinyAutoencoder final : public Vae {
 public:
  TinyAutoencoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config);

  const VaeInfo& info() const override { return info_; }
  LatentDistribution encode(const Tensor& image, Circular circular) const override;
  Tensor decode(const Tensor& latent, const Between& between, Circular circular) const override;

 private:
  VaeInfo info_;
  DType activations_;
  TinyHalf encoder_, decoder_;
};

// Loads a folder with config.json and weights, or a file (tiny_file.h), for the latents of `model`,
// with the model's device and activations. Throws as load_image_model does, and invalid_argument if
// the latents do not match.
std::unique_ptr<Vae> load_tiny_autoencoder(const std::filesystem::path& path,
                                           const ImageModel& model);

}  // namespace rbee::models
