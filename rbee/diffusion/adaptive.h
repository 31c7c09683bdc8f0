#pragma once
// Adaptive step sizes: computes a step by DPM-Solver-3 and, from the same model calls, by order 2,
// and takes the step if both agree (Lu et al. 2022a, appendix C, with the controller of
// k-diffusion's sample_dpm_adaptive).

#include <vector>

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/plan.h"

namespace rbee::diffusion {

class AdaptiveSteps {
 public:
  // Besides kX: a trial's results by both orders, the lower-order result of the last accepted step
  // (at first x), and the denoised picture at a trial's beginning.
  static constexpr Register kLow = 1, kHigh = 2, kBefore = 3, kDenoised = 4;
  static constexpr Register kRegisters = 9;
  static constexpr int32_t kMaxTrials = 500;  // of three calls each

  struct Options {
    double from = 1, to = 0.01;  // noise levels, falling, above 0
    double eta = 1;              // 0 to 1: share of fresh noise
    double noise_scale = 1;
    int32_t steps = 20;  // for reporting progress; the number of real steps is not known in advance
  };
  AdaptiveSteps(NoiseModel noise, const Options& options);

  bool arrived() const;
  double sigma() const { return sigma_; }  // of kX
  int32_t steps() const { return options_.steps; }
  // The progress in log(sigma), in steps; all steps at the end.
  int32_t steps_done() const;
  // kLow and kHigh from kX.
  std::vector<Instruction> trial() const;
  // The instructions that accept a trial with this error, see trial_error(). Nothing if the error
  // is too large: then the next trial is shorter. After an error that is NaN there are no more
  // trials. Throws unsupported after kMaxTrials.
  std::vector<Instruction> judge(double error);

 private:
  double target() const;

  NoiseModel noise_;
  Options options_;
  double sigma_;
  double length_;  // of the next trial in log(sigma)
  int32_t trials_ = 0;
};

// The error relative to the tolerance: the root mean square of (low - high) / max(0.0078, 0.05
// max(|low|, |before|)). All must have the same size.
double trial_error(const std::vector<float>& low, const std::vector<float>& high,
                   const std::vector<float>& before);

// The last level of DPM fast and DPM adaptive: the model's least level, or a level below `from` if
// that is not less.
double least_sigma(const NoiseModel& noise, double from);

}  // namespace rbee::diffusion
