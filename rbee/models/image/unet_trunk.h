#pragma once
// The parts that a UNet and a ControlNet share: the vector of the time step, the down path and the
// middle.

#include "rbee/models/image/parts.h"
#include "rbee/models/image/unet_blocks.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {

struct UnetPrompt final : Conditioning {
  std::vector<KeysValues> cross;  // in the order of the transformer blocks
  Tensor added;                   // (batch, time_width) of the pooled prompt and the sizes
  Tensor guidance;                // (batch, channels) added to the time step's sinusoids
  int64_t batch = 0;

  std::unique_ptr<Conditioning> clone() const override {
    return std::make_unique<UnetPrompt>(*this);
  }
  std::vector<Tensor*> tensors() override;
};

class UnetTrunk {
 public:
  // Takes conv_in, time_embedding, add_embedding, down_blocks and mid_block.
  UnetTrunk(const nn::WeightScope& scope, const UnetConfig& config);

  const UnetConfig& config() const { return config_; }
  const UnetCommon& common() const { return common_; }
  DType activations() const { return activations_; }
  const DenoiserInfo& info() const { return info_; }
  size_t skips() const;  // conv_in's, and one for each resnet and each halving
  int64_t skip_channels(size_t index) const;

  // With the keys and values of the down path and the middle.
  std::unique_ptr<UnetPrompt> prepare(const TextStates& text) const;
  // Gives the conditioning. Throws invalid_argument if x or the time steps do not fit it.
  const UnetPrompt& check_call(const Tensor& x, const Tensor& timesteps,
                               const Conditioning& conditioning) const;

  // `up`: the layers after the middle.
  UnetPass start(const Tensor& timesteps, const UnetPrompt& prompt, Circular circular,
                 std::span<const UnetLayers> up = {}) const;
  // x: (batch, height, width, in_channels) f32
  Tensor enter(const Tensor& x, const UnetPass& pass) const {
    return in_(cast(x, activations_), pass.circular);
  }
  // The skips: the first is `entered`, the last is the smallest picture.
  std::vector<Tensor> go_down(const Tensor& entered, UnetPass& pass) const;
  Tensor middle(const Tensor& x, UnetPass& pass) const { return (*middle_)(x, pass); }

 private:
  void load_vectors(const nn::WeightScope& scope);
  void load_down(const nn::WeightScope& scope);
  void check_text(const TextStates& text) const;
  Tensor added_vector(const TextStates& text) const;
  SinusoidOrder order() const;

  UnetConfig config_;
  UnetCommon common_;
  DenoiserInfo info_;
  DType activations_;
  nn::Conv2d in_;
  Tensor frequencies_, size_frequencies_, guidance_frequencies_;
  VectorMlp time_, added_;
  nn::Linear guidance_;
  std::vector<UnetLayers> down_;
  std::vector<nn::Conv2d> downsamplers_;  // one less than levels
  std::unique_ptr<UnetMiddle> middle_;
};

}  // namespace rbee::models
