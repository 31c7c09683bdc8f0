#pragma once
// ControlNet (Zhang et al. 2023), diffusers' ControlNetModel: a copy of a UNet's down path that
// reads a control picture, such as edges or a pose, and adds its results to the UNet's skips.

#include <filesystem>

#include "rbee/models/image/image_model.h"
#include "rbee/models/image/unet_trunk.h"

namespace rbee::models {

struct ControlCall {
  Tensor x;                // as the UNet's
  Tensor timesteps;        // as the UNet's
  Tensor hint;             // (batch, height, width, 3) in [0, 1], eight times x's height and width
  float scale = 1;         // factor of the additions; 0 = none
  Circular circular = {};  // of x and the hint
};

class ControlNet {
 public:
  ControlNet(const nn::WeightScope& scope, const io::JsonConfig& config, int64_t pooled_width);

  // The ControlNet has its own keys and values, so prompts must be prepared for it too.
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const;
  // Throws invalid_argument naming a tensor of a wrong shape.
  ControlStates operator()(const ControlCall& call, const Conditioning& conditioning) const;

 private:
  Tensor read_hint(const ControlCall& call) const;

  UnetTrunk trunk_;
  nn::Conv2d hint_in_, hint_out_;
  std::vector<nn::Conv2d> hint_blocks_;  // in pairs; the second of a pair halves the size
  std::vector<nn::Conv2d> skips_;        // of one pixel
  nn::Conv2d middle_;
};

// Loads a folder with config.json and weights, or one file (control_file.h), for `model`, with the
// model's device and activations. Throws as load_image_model does.
std::unique_ptr<ControlNet> load_control_net(const std::filesystem::path& path,
                                             const ImageModel& model);

}  // namespace rbee::models
