#pragma once
// The denoiser of Stable Diffusion 1, 2 and XL: diffusers' UNet2DConditionModel.

#include "rbee/models/image/unet_trunk.h"

namespace rbee::models {

class Unet final : public Denoiser {
 public:
  // Takes the names of a diffusers folder. Throws as WeightScope does.
  Unet(const nn::WeightScope& scope, const UnetConfig& config);

  const DenoiserInfo& info() const override { return trunk_.info(); }
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override;
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const DenoiserOptions& options) const override;

 private:
  void load_up(const nn::WeightScope& scope);
  Tensor go_up(Tensor h, std::vector<Tensor> skips, UnetPass& pass) const;

  UnetTrunk trunk_;
  std::vector<UnetLayers> up_;
  std::vector<nn::Conv2d> upsamplers_;  // one less than levels
  nn::GroupNorm out_norm_;
  nn::Conv2d out_;
};

}  // namespace rbee::models
