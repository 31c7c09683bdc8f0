#pragma once
// Runs a plan on tensors on any device.

#include <functional>

#include "rbee/diffusion/plan.h"
#include "rbee/tensor/tensor.h"

namespace rbee::diffusion {

struct Evaluation {
  Tensor denoised;
  Tensor unguided;  // only if it was asked for
};

// The state of a run after a step.
struct StepEnd {
  int32_t done = 0;  // of Plan::count()
  double sigma = 0;  // x's noise
  bool last = false;
};

struct PlanHooks {
  // The picture in x, whose noise has level `sigma`; the tensor is new, of x's shape and dtype.
  std::function<Evaluation(const Tensor& x, double sigma, double time, bool unguided)> evaluate;
  // Fresh normal numbers of x's shape and dtype.
  std::function<Tensor()> draw;
  // Called after each step with x, which it may replace, and the step's estimate of the picture.
  // Adaptive steps call it after each trial, so `done` may stay or jump. False ends the run.
  std::function<bool(const StepEnd& end, Tensor& x, const Tensor& denoised)> after_step;
};

// x: f32. Gives the last x, scaled as the plan says (not scaled if a hook ended the run). Throws as
// AdaptiveSteps.
Tensor run_plan(const Plan& plan, Tensor x, const PlanHooks& hooks);

// sum of factor * tensor; one shape and dtype. Throws invalid_argument if there are no terms.
struct Weighted {
  const Tensor* tensor = nullptr;
  double factor = 0;
};
Tensor weighted_sum(std::initializer_list<Weighted> terms);

}  // namespace rbee::diffusion
