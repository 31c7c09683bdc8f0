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

struct PlanHooks {
  // The picture in x, whose noise has level `sigma`; the tensor is new, of x's shape and dtype.
  std::function<Evaluation(const Tensor& x, double sigma, double time, bool unguided)> evaluate;
  // Fresh normal numbers of x's shape and dtype.
  std::function<Tensor()> draw;
  // After each step, 0-based: x, which may be replaced, and what the step took the picture to be.
  // False ends the run.
  std::function<bool(int32_t step, Tensor& x, const Tensor& denoised)> after_step;
};

// x: f32. Returns the last x, scaled as the plan says (not scaled when a hook ended the run).
Tensor run_plan(const Plan& plan, Tensor x, const PlanHooks& hooks);

// sum of factor * tensor; one shape and dtype. Throws invalid_argument when there are no terms.
struct Weighted {
  const Tensor* tensor = nullptr;
  double factor = 0;
};
Tensor weighted_sum(std::initializer_list<Weighted> terms);

}  // namespace rbee::diffusion
