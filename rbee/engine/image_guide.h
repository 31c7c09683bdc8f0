#pragma once
// What samplers ask of a model: the picture in a noisy latent, guided by prompts.

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/run_plan.h"
#include "rbee/engine/image_control.h"
#include "rbee/engine/image_text.h"
#include "rbee/tensor/recording.h"

namespace rbee::engine {

struct GuideOptions {
  float scale = 1;  // classifier-free guidance (Ho and Salimans 2022); 1 and below = off
  float rescale =
      0;  // share of the output that gets the prompted half's deviation (Lin et al. 2023)
  bool unguided = false;  // the sampler asks for both halves whatever the scale
  Tensor extra;           // (batch, h, w, c): what an inpainting denoiser reads behind the latent
  std::vector<ControlHint> controls;
};

// Calls a denoiser for one prompt and one size; on devices that can record, from the second call on
// as a recording, because the host takes longer to queue a step's kernels than small pictures take
// to compute.
class RepeatedDenoiser {
 public:
  // Both outlive the object.
  RepeatedDenoiser(const models::Denoiser& denoiser, const models::Conditioning& conditioning)
      : denoiser_(denoiser), conditioning_(conditioning) {}

  // As Denoiser's call. `calls_left`: of the same size, this one included, as far as is known. The
  // result is overwritten by the next call.
  Tensor operator()(const Tensor& x, const Tensor& times, int64_t calls_left);

 private:
  void record(const Tensor& x, const Tensor& times);

  const models::Denoiser& denoiser_;
  const models::Conditioning& conditioning_;
  bool warm_ = false;  // the first call loads kernels and fills caches, which cannot be recorded
  Recording recording_;
  Tensor x_, times_, result_;  // of the recording
};

class Guide {
 public:
  // `states` are of one sample and are repeated for the batch. Both halves share calls of the
  // denoiser, the negative one first. All arguments outlive the guide.
  Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise,
        const PromptStates& states, int64_t batch, const GuideOptions& options);

  // x: (batch, h, w, channels)
  diffusion::Evaluation evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                 StepPlace place);

 private:
  const diffusion::NoiseModel& noise_;
  GuideOptions options_;
  bool both_;                // halves
  models::TextStates text_;  // of all rows
  std::unique_ptr<models::Conditioning> conditioning_;
  const models::Denoiser& denoiser_;
  RepeatedDenoiser repeated_;
  ControlPass controls_;
};

// x, of which the share `amount` has the standard deviation of `like` in each sample.
Tensor with_deviation_of(const Tensor& x, const Tensor& like, double amount);

}  // namespace rbee::engine
