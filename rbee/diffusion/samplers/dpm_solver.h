#pragma once
// Single steps of DPM-Solver (Lu et al. 2022a), as in k-diffusion: in t = -log(sigma), along the
// direction (x - picture) / sigma, which for flows is the velocity.

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {

struct AncestralStep {
  double from, to, eta;
};
// ancestral(), but its straight part does not end below `least`.
Ancestral bounded_ancestral(const NoiseModel& noise, const AncestralStep& step, double least);

// Writes the parts of a step of kX from one noise level to another. Call them in this order: look()
// into `direction`; for orders 2 and 3 look_ahead(); for order 3 look_further(); then the end of
// the order.
struct DpmSolver {
  static constexpr double kHalf = 1.0 / 2, kThird = 1.0 / 3;  // of the step, at look_ahead()

  struct Registers {
    Register denoised, direction, ahead, second;
  };

  // target = the direction at `source`
  void look(Register target, Register source, double sigma) const;
  // second = the direction after a part of the step
  void look_ahead(double from, double to, double part) const;
  // second = the direction after two thirds of the step; look_ahead() was for the first one
  void look_further(double from, double to) const;
  void first_order(Register target, double from, double to) const;
  void second_order(Register target, double from, double to, double part) const;
  void third_order(Register target, double from, double to) const;

  PlanWriter& writer;
  const NoiseModel& noise;
  Registers r;
};

}  // namespace rbee::diffusion
