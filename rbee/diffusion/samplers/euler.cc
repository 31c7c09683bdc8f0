// Euler's method on the probability flow, with fresh noise between steps for the ancestral ones.
// DDIM and DDPM are the same steps on x / sqrt(1 + sigma^2): DDIM's eta is the share of fresh
// noise, and DDPM's posterior variance is that of eta = 1.

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {

void euler(Steps& steps, bool ancestral_steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = ancestral_steps ? steps.sigma(i) : add_churn(steps, normals, i);
    const double next = steps.sigma(i + 1);
    steps.evaluate_at(denoised, i, now);
    const double eta = ancestral_steps ? steps.eta : 0;
    const Ancestral split = ancestral(steps.noise, now, next, eta);
    move_straight(steps, kX, now, split.down, denoised);
    add_fresh(steps, normals, split);
    writer.end_step(denoised, next);
  }
}

}  // namespace rbee::diffusion
