#pragma once
// The samplers' view of a model: predicts the picture in a noisy latent, guided by prompts.

#include <deque>
#include <optional>

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/run_plan.h"
#include "rbee/engine/image/control.h"
#include "rbee/engine/image/text.h"
#include "rbee/tensor/graph_capture.h"

namespace rbee::engine {

struct GuideOptions {
  float scale = 1;    // classifier-free guidance (Ho and Salimans 2022); 1 and below = off
  float rescale = 0;  // share of the output rescaled to the conditional deviation (Lin et al. 2023)
  bool unguided = false;  // the sampler needs both predictions at any scale
  // Prompts change by reported steps, not by calls, whose number is unknown.
  bool by_steps = false;
  Tensor extra;  // (batch, h, w, c): extra channels for an inpainting denoiser, after the latent
  std::vector<ControlHint> controls;
  Circular circular = {};
};

// Calls a denoiser for one size. From the second call on it replays a capture for prompts of one
// length, on devices that can, because queueing a step's kernels takes the host longer than
// computing a small picture.
class RepeatedDenoiser {
 public:
  // The denoiser must outlive this. `changes`: the conditioning differs between calls; the capture
  // then reads its own tensors.
  RepeatedDenoiser(const models::Denoiser& denoiser, bool changes, Circular circular)
      : denoiser_(denoiser), changes_(changes), circular_(circular) {}

  struct Prompt {
    models::Conditioning& conditioning;  // must outlive this unless `changes`
    size_t index = 0;                    // the same for the same texts
  };
  // As Denoiser's call. `calls_left`: remaining calls of this size, with this one, as far as known.
  // The next call overwrites the result.
  Tensor operator()(const Tensor& x, const Tensor& times, const Prompt& prompt, int64_t calls_left);

 private:
  void capture(const Tensor& x, const Tensor& times, models::Conditioning& conditioning);
  // Whether the capture can read this prompt.
  bool fits(models::Conditioning& conditioning) const;
  // Updates the capture's inputs to this prompt.
  void follow(const Prompt& prompt);

  const models::Denoiser& denoiser_;
  bool changes_;
  Circular circular_;
  bool warm_ = false;  // the first call loads kernels and fills caches, which cannot be captured
  std::unique_ptr<models::Conditioning> own_;  // of a capture whose prompts change
  std::optional<size_t> followed_;             // the prompt whose values own_ has
  GraphCapture capture_;
  Tensor x_, times_, result_;  // of the capture
};

class Guide {
 public:
  // `states` belong to one sample and are repeated for the batch. The negative prompt (first) and
  // the parts of the prompt share calls of the denoiser. All other arguments must outlive the
  // guide.
  Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise, PromptStates states,
        const PassPrompts& prompts, int64_t batch, const GuideOptions& options);

  // The pass's next call of the denoiser. x: (batch, h, w, channels)
  diffusion::Evaluation evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                 StepPlace place);

 private:
  // The denoiser's inputs for one combination of texts.
  struct Prepared {
    std::unique_ptr<models::Conditioning> conditioning;
    ControlPass controls;
  };
  Prepared& prepared(size_t index);
  Prepared prepare(const CallTexts& texts) const;
  // The combined output of the prompt's parts, at a guidance of 1.
  Tensor prompted(const Tensor& output, const Tensor& negative) const;

  const diffusion::NoiseModel& noise_;
  GuideOptions options_;
  PromptStates states_;
  const PassPrompts& prompts_;
  int64_t batch_;
  bool guided_;  // calls include the negative prompt
  const models::Denoiser& denoiser_;
  std::vector<std::optional<Prepared>>
      prepared_;             // by PassPrompts::calls; only a few recurring ones
  std::deque<size_t> kept_;  // which those are, oldest first
  RepeatedDenoiser repeated_;
  int32_t call_ = 0;
};

// x with the share `amount` of it scaled to the standard deviation of `like`, in each sample.
Tensor with_deviation_of(const Tensor& x, const Tensor& like, double amount);

}  // namespace rbee::engine
