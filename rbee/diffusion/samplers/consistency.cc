// Samplers of distilled models: latent consistency (Luo et al. 2023) and trajectory consistency
// (Zheng et al. 2024).

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

// The boundary condition that makes a consistency model the identity at time 0: its picture is
// skip * latent + out * denoised.
struct Boundary {
  double skip, out;
};
Boundary boundary(double time) {
  constexpr double kData = 0.5;  // standard deviation of the data
  constexpr double kTimeScale = 10;
  const double t = kTimeScale * time;
  const double variance = t * t + kData * kData;
  return {kData * kData / variance, t / std::sqrt(variance)};
}

}  // namespace

void lcm(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(denoised, i);
    Boundary b{0, 1};
    if (!steps.noise.is_flow()) b = boundary(steps.levels.times[static_cast<size_t>(i)]);
    const bool last = i + 1 == steps.count();
    if (!last) writer.draw(normals);
    const double alpha = steps.noise.alpha(next);
    writer.combine(kX, {{kX, alpha * b.skip / std::sqrt(1 + now * now)},
                        {denoised, alpha * b.out},
                        {normals, last ? 0 : next}});
    writer.end_step(denoised, next);
  }
}

// Straight to the level of time (1 - eta) t', then noised up to that of t'.
void tcd(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    const bool last = i + 1 == steps.count();
    steps.evaluate(denoised, i);
    Ancestral split{.down = next};
    if (!last && steps.eta > 0) {
      const double time = steps.levels.times[static_cast<size_t>(i) + 1];
      split.down = steps.noise.sigma(std::floor((1 - steps.eta) * time));
      split.keep = steps.noise.alpha(next) / steps.noise.alpha(split.down);
      const double kept = split.keep * split.down;
      split.fresh = std::sqrt(std::max(next * next - kept * kept, 0.0));
    }
    move_straight(steps, kX, now, split.down, denoised);
    add_fresh(steps, normals, split);
    writer.end_step(denoised, next);
  }
}

}  // namespace rbee::diffusion
