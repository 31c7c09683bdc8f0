#pragma once
// A model's noise: its noise levels, its "time" of each, and how its output becomes a denoised
// picture.
//
// Samplers work on x = alpha * picture + sigma * noise. For models with discrete timesteps, alpha =
// 1 (Karras et al. 2022): the variance-preserving latent is x / sqrt(1 + sigma^2). Flows have alpha
// = 1 - sigma.

#include <cstdint>
#include <vector>

#include "rbee/diffusion/scheduler_config.h"

namespace rbee::diffusion {

// model input = in * x;  denoised = skip * x + out * model output
struct Scaling {
  double in = 1, skip = 1, out = 1;
};

class NoiseModel {
 public:
  // `image_tokens`: the picture's number of tokens, which sets a flow's dynamic shift. Throws
  // invalid_argument for betas outside 0 to 1, and for levels and shifts that are not finite
  // numbers.
  explicit NoiseModel(const SchedulerConfig& config, int64_t image_tokens = 0);

  Prediction prediction() const { return prediction_; }
  bool is_flow() const { return prediction_ == Prediction::flow; }
  int32_t train_steps() const { return train_steps_; }
  // The levels of all timesteps, the least noise first.
  const std::vector<double>& sigmas() const { return sigmas_; }
  double sigma_min() const { return sigmas_.front(); }
  double sigma_max() const { return sigmas_.back(); }

  double alpha(double sigma) const { return is_flow() ? 1 - sigma : 1; }
  // log(alpha / sigma), half the logarithm of the signal-to-noise ratio.
  double lambda(double sigma) const;
  // The noise level with this lambda().
  double sigma_of_lambda(double lambda) const;
  // The noise level of a model's time between 0 and train_steps - 1, also between timesteps: their
  // log(sigma) is interpolated (k-diffusion). Of a flow: the shifted t / train_steps.
  double sigma(double time) const;
  // The same, with sigma itself interpolated (diffusers' Euler family).
  double sigma_between(double time) const;
  // The model's time of a noise level: the inverse of sigma(), but train_steps * sigma for flows.
  double time(double sigma) const;
  // t / (shift ...) of a flow: the noise level of the share t of the way, 0 to 1.
  double shifted(double t) const;

  Scaling scaling(double sigma) const;

 private:
  void fill_discrete(const SchedulerConfig& config);
  void fill_flow();

  Prediction prediction_;
  int32_t train_steps_;
  double shift_ = 1;
  std::vector<double> sigmas_;
  std::vector<double> log_sigmas_;
};

// Cumulative products of 1 - beta, rescaled to zero terminal SNR if the config asks for it (then
// the last is 2^-24 instead of 0). Throws invalid_argument for betas outside 0 to 1.
std::vector<double> cumulative_alphas(const SchedulerConfig& config);

}  // namespace rbee::diffusion
