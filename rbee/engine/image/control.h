#pragma once
// ControlNets of one pass: which of them are active at a step, and the sum of their outputs.

#include <optional>
#include <span>

#include "rbee/models/image/control_net.h"

namespace rbee::engine {

struct ControlHint {
  const models::ControlNet* net = nullptr;
  Tensor picture;  // (1, height, width, 3) in [0, 1], of the pass's size in pixels
  float scale = 1;
  float start = 0;   // share of the steps
  float finish = 1;  // the same
};

// The place in a pass: step `index` of `count`.
struct StepPlace {
  int32_t index = 0;
  int32_t count = 1;
};

// Whether a network with the share [start, finish] of the steps is active at this one, rounded as
// in diffusers: the step must lie within.
bool is_active_at(const ControlHint& hint, StepPlace place);

class ControlPass {
 public:
  ControlPass() = default;
  // `text`: for all rows of a denoiser call. The networks must outlive the pass.
  ControlPass(std::span<const ControlHint> hints, const models::TextStates& text,
              Circular circular);

  // x and timesteps: as for the UNet, without an inpainting model's extra channels. Nothing if no
  // network is active.
  std::optional<models::ControlStates> operator()(const Tensor& x, const Tensor& timesteps,
                                                  StepPlace place) const;

 private:
  struct Part {
    ControlHint hint;
    std::unique_ptr<models::Conditioning> conditioning;
  };
  std::vector<Part> parts_;
  Circular circular_;
};

}  // namespace rbee::engine
