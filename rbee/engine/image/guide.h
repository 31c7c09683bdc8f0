#pragma once
// What samplers ask of a model: the picture in a noisy latent, guided by prompts.

#include <deque>
#include <optional>

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/run_plan.h"
#include "rbee/engine/image/control.h"
#include "rbee/engine/image/text.h"
#include "rbee/tensor/graph_capture.h"

namespace rbee::engine {

struct GuideOptions {
  float scale = 1;  // classifier-free guidance (Ho and Salimans 2022); 1 and below = off
  float rescale =
      0;  // share of the output that gets the prompted half's deviation (Lin et al. 2023)
  bool unguided = false;  // the sampler asks for both halves whatever the scale
  // The prompt changes with the steps that are told, not with the calls, whose number is not known.
  bool by_steps = false;
  Tensor extra;  // (batch, h, w, c): what an inpainting denoiser reads behind the latent
  std::vector<ControlHint> controls;
  Circular circular = {};
};

// Calls a denoiser for one size and prompts of one length; on devices that can record, from the
// second call on as a capture, because the host takes longer to queue a step's kernels than small
// pictures take to compute.
class RepeatedDenoiser {
 public:
  // The denoiser outlives the object. `changes`: calls have different conditionings, which a
  // capture then reads from tensors of its own.
  RepeatedDenoiser(const models::Denoiser& denoiser, bool changes, Circular circular)
      : denoiser_(denoiser), changes_(changes), circular_(circular) {}

  struct Prompt {
    models::Conditioning& conditioning;  // outlives the object unless it changes
    size_t index = 0;                    // the same for the same texts
  };
  // As Denoiser's call. `calls_left`: of the same size, this one included, as far as is known. The
  // result is overwritten by the next call.
  Tensor operator()(const Tensor& x, const Tensor& times, const Prompt& prompt, int64_t calls_left);

 private:
  void capture(const Tensor& x, const Tensor& times, models::Conditioning& conditioning);
  // Brings what a capture reads up to this prompt.
  void follow(const Prompt& prompt);

  const models::Denoiser& denoiser_;
  bool changes_;
  Circular circular_;
  bool warm_ = false;  // the first call loads kernels and fills caches, which cannot be captured
  std::unique_ptr<models::Conditioning> own_;  // of a capture whose prompts change
  std::optional<size_t> followed_;             // the prompt that own_ has the values of
  GraphCapture capture_;
  Tensor x_, times_, result_;  // of the capture
};

class Guide {
 public:
  // `states` are of one sample and are repeated for the batch. The negative prompt and the parts of
  // the prompt share calls of the denoiser, the negative one first. All arguments outlive the guide
  // but the states.
  Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise, PromptStates states,
        const PassPrompts& prompts, int64_t batch, const GuideOptions& options);

  // The pass's next call of the denoiser. x: (batch, h, w, channels)
  diffusion::Evaluation evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                 StepPlace place);

 private:
  // What the denoiser is told by some of the texts.
  struct Told {
    std::unique_ptr<models::Conditioning> conditioning;
    ControlPass controls;
  };
  Told& told(size_t index);
  Told tell(const Said& said) const;
  // The output that the prompt's parts give together, at a guidance of 1.
  Tensor prompted(const Tensor& output, const Tensor& negative) const;

  const diffusion::NoiseModel& noise_;
  GuideOptions options_;
  PromptStates states_;
  const PassPrompts& prompts_;
  int64_t batch_;
  bool guided_;  // whether calls have the negative prompt
  const models::Denoiser& denoiser_;
  std::vector<std::optional<Told>> told_;  // by PassPrompts::said, of a few that come again
  std::deque<size_t> kept_;                // which those are, the oldest first
  RepeatedDenoiser repeated_;
  int32_t call_ = 0;
};

// x, of which the share `amount` has the standard deviation of `like` in each sample.
Tensor with_deviation_of(const Tensor& x, const Tensor& like, double amount);

}  // namespace rbee::engine
