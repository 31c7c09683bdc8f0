#pragma once
// ControlNets of one pass: which of them speak at a step, and the sum of what they say.

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

// Where a pass is: step `index` of `count`.
struct StepPlace {
  int32_t index = 0;
  int32_t count = 1;
};

// Whether a network that is asked for the share [start, finish] of the steps speaks at this one, as
// diffusers rounds it: the step lies within.
bool speaks_at(const ControlHint& hint, StepPlace place);

class ControlPass {
 public:
  ControlPass() = default;
  // `text`: of all rows that a call of the denoiser has. The networks outlive the pass.
  ControlPass(std::span<const ControlHint> hints, const models::TextStates& text,
              Circular circular);

  // x and timesteps: as the UNet's, without an inpainting model's extra channels. Nothing when no
  // network speaks.
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
