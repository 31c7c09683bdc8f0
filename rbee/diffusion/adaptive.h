#pragma once
// Steps of a length that depends on the latent: DPM-Solver-3 beside a solution of order 2 from the
// same calls of the model, and a step is taken when both agree (Lu et al. 2022a, appendix C, with
// the controller of k-diffusion's sample_dpm_adaptive).

#include <vector>

#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/plan.h"

namespace rbee::diffusion {

class AdaptiveSteps {
 public:
  // Beside kX: what a trial ends at by both orders, what the last step that was taken ended at by
  // the lower one (at first x), and the picture that a trial began with.
  static constexpr Register kLow = 1, kHigh = 2, kBefore = 3, kDenoised = 4;
  static constexpr Register kRegisters = 9;
  static constexpr int32_t kMaxTrials = 500;  // of three calls each

  struct Options {
    double from = 1, to = 0.01;  // noise levels, falling, above 0
    double eta = 1;              // 0 to 1: share of fresh noise
    double noise_scale = 1;
    int32_t steps = 20;  // in which progress is told; how many are taken is not known ahead
  };
  AdaptiveSteps(NoiseModel noise, const Options& options);

  bool arrived() const;
  double sigma() const { return sigma_; }  // of kX
  int32_t steps() const { return options_.steps; }
  // How much of the way in log(sigma) is behind, in steps; all of them once arrived.
  int32_t steps_done() const;
  // kLow and kHigh from kX.
  std::vector<Instruction> trial() const;
  // What takes the trial whose error this is, see trial_error(); nothing where it is too large,
  // then the next trial is shorter. After one that is no number there are no more. Throws
  // unsupported after kMaxTrials.
  std::vector<Instruction> judge(double error);

 private:
  double target() const;

  NoiseModel noise_;
  Options options_;
  double sigma_;
  double length_;  // of the next trial in log(sigma)
  int32_t trials_ = 0;
};

// A distance in units of what is tolerated: the root of the mean square of (low - high) /
// max(0.0078, 0.05 max(|low|, |before|)). Of one size.
double trial_error(const std::vector<float>& low, const std::vector<float>& high,
                   const std::vector<float>& before);

// Where DPM fast and DPM adaptive end: the model's least level, or below `from` where that is no
// less.
double least_sigma(const NoiseModel& noise, double from);

}  // namespace rbee::diffusion
