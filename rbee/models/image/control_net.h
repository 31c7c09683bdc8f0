#pragma once
// ControlNet (Zhang et al. 2023): a copy of a UNet's way down that reads a picture, such as edges
// or a pose, and adds what it sees to the UNet's skips. diffusers' ControlNetModel.

#include <filesystem>

#include "rbee/models/image/image_model.h"
#include "rbee/models/image/unet_trunk.h"

namespace rbee::models {

struct ControlCall {
  Tensor x;                // as the UNet's
  Tensor timesteps;        // as the UNet's
  Tensor hint;             // (batch, height, width, 3) in [0, 1], eight times x's height and width
  float scale = 1;         // of what is added; 0 = nothing
  Circular circular = {};  // of x and the hint
};

class ControlNet {
 public:
  ControlNet(const nn::WeightScope& scope, const io::JsonConfig& config, int64_t pooled_width);

  // Keys and values are the ControlNet's own, so prompts are prepared for it as for the UNet.
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const;
  // Throws invalid_argument naming a tensor of a wrong shape.
  ControlStates operator()(const ControlCall& call, const Conditioning& conditioning) const;

 private:
  Tensor read_hint(const ControlCall& call) const;

  UnetTrunk trunk_;
  nn::Conv2d hint_in_, hint_out_;
  std::vector<nn::Conv2d> hint_blocks_;  // in pairs, the second of which halves
  std::vector<nn::Conv2d> skips_;        // of one pixel
  nn::Conv2d middle_;
};

// A folder with config.json and weights, or one file (control_file.h), for `model`, whose device
// and activations it takes. Throws as load_image_model does.
std::unique_ptr<ControlNet> load_control_net(const std::filesystem::path& path,
                                             const ImageModel& model);

}  // namespace rbee::models
