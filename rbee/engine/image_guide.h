#pragma once
// What samplers ask of a model: the picture in a noisy latent, guided by prompts.

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/run_plan.h"
#include "rbee/engine/image_control.h"
#include "rbee/engine/image_text.h"

namespace rbee::engine {

struct GuideOptions {
  float scale = 1;  // classifier-free guidance (Ho and Salimans 2022); 1 and below = off
  float rescale =
      0;  // share of the output that gets the prompted half's deviation (Lin et al. 2023)
  bool unguided = false;  // the sampler asks for both halves whatever the scale
  Tensor extra;           // (batch, h, w, c): what an inpainting denoiser reads behind the latent
  std::vector<ControlHint> controls;
};

class Guide {
 public:
  // `states` are of one sample and are repeated for the batch. Both halves share calls of the
  // denoiser, the negative one first. All arguments outlive the guide.
  Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise,
        const PromptStates& states, int64_t batch, const GuideOptions& options);

  // x: (batch, h, w, channels)
  diffusion::Evaluation evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                 StepPlace place) const;

 private:
  const models::Denoiser& denoiser_;
  const diffusion::NoiseModel& noise_;
  GuideOptions options_;
  bool both_;  // halves
  std::unique_ptr<models::Conditioning> conditioning_;
  ControlPass controls_;
};

// x, of which the share `amount` has the standard deviation of `like` in each sample.
Tensor with_deviation_of(const Tensor& x, const Tensor& like, double amount);

}  // namespace rbee::engine
