#pragma once
// The denoiser of Stable Diffusion 1, 2 and XL: diffusers' UNet2DConditionModel.

#include "rbee/models/image/parts.h"
#include "rbee/models/image/unet_blocks.h"

namespace rbee::models {

class Unet final : public Denoiser {
 public:
  // Takes the names of a diffusers folder. Throws as WeightScope does.
  Unet(const nn::WeightScope& scope, const UnetConfig& config);

  const DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override;
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const ControlStates* control) const override;

 private:
  struct Prompt;

  void load_down(const nn::WeightScope& scope, const UnetCommon& common);
  void load_up(const nn::WeightScope& scope, const UnetCommon& common);
  void load_vectors(const nn::WeightScope& scope);
  void check_text(const TextStates& text) const;
  Tensor added_vector(const TextStates& text) const;
  Tensor time_vector(const Tensor& timesteps, const Prompt& prompt) const;
  std::vector<Tensor> go_down(const Tensor& x, UnetPass& pass) const;
  Tensor go_up(Tensor h, std::vector<Tensor> skips, UnetPass& pass) const;

  UnetConfig config_;
  DenoiserInfo info_;
  DType activations_;
  nn::Conv2d in_, out_;
  nn::GroupNorm out_norm_;
  Tensor frequencies_, size_frequencies_, guidance_frequencies_;
  VectorMlp time_, added_;
  nn::Linear guidance_;
  std::vector<UnetLayers> down_, up_;
  std::vector<nn::Conv2d> downsamplers_, upsamplers_;  // one less than levels
  std::unique_ptr<UnetMiddle> middle_;
};

}  // namespace rbee::models
