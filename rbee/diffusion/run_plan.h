#pragma once
// Runs a plan on tensors, wherever they are.

#include <functional>

#include "rbee/diffusion/plan.h"
#include "rbee/tensor/tensor.h"

namespace rbee::diffusion {

struct Evaluation {
  Tensor denoised;
  Tensor unguided;  // only where it was asked for
};

// Where a run is after a step.
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
  // After each step: x, which may be replaced, and what the step took the picture to be. Adaptive
  // steps call it after each trial, so that `done` may stay or jump. False ends the run.
  std::function<bool(const StepEnd& end, Tensor& x, const Tensor& denoised)> after_step;
};

// x: f32. Returns the last x, scaled as the plan says (not scaled when a hook ended the run).
// Throws as AdaptiveSteps.
Tensor run_plan(const Plan& plan, Tensor x, const PlanHooks& hooks);

// sum of factor * tensor; one shape and dtype. Throws invalid_argument when there are no terms.
struct Weighted {
  const Tensor* tensor = nullptr;
  double factor = 0;
};
Tensor weighted_sum(std::initializer_list<Weighted> terms);

}  // namespace rbee::diffusion
