// Samplers of two calls a step: Heun's method, the midpoint rule (DPM-Solver-2) and
// DPM-Solver++(2S).

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

// The level halfway between two in log(alpha / sigma). A flow begins without any signal; it is
// taken to begin a little later.
double halfway(const NoiseModel& noise, double from, double to) {
  if (!noise.is_flow()) return std::sqrt(from * to);
  constexpr double kAlmostNoise = 0.9999;
  const double middle =
      (noise.lambda(std::min(from, kAlmostNoise)) + noise.lambda(std::min(to, kAlmostNoise))) / 2;
  return 1 / (1 + std::exp(middle));
}

}  // namespace

// Karras et al. 2022, algorithm 2.
void heun(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register ahead = writer.add_register();
  const Register second = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = add_churn(steps, normals, i);
    const double next = steps.sigma(i + 1);
    steps.evaluate_at(first, i, now);
    if (steps.ends_at(i)) {
      move_straight(steps, kX, now, next, first);
      writer.end_step(first, next);
      continue;
    }
    move_straight(steps, ahead, now, next, first);
    writer.evaluate(second, ahead, next, steps.levels.times[static_cast<size_t>(i) + 1]);
    const double half = (next - now) / 2;
    writer.combine(
        kX,
        {{kX, 1 + half / now}, {first, -half / now}, {ahead, half / next}, {second, -half / next}});
    writer.end_step(first, next);
  }
}

void dpm2(Steps& steps, bool ancestral_steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = ancestral_steps ? steps.sigma(i) : add_churn(steps, normals, i);
    const double next = steps.sigma(i + 1);
    const Ancestral split = ancestral(steps.noise, now, next, ancestral_steps ? steps.eta : 0);
    steps.evaluate_at(first, i, now);
    if (split.down <= 0) {
      move_straight(steps, kX, now, split.down, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = std::sqrt(now * split.down);
    move_straight(steps, middle, now, between, first);
    steps.evaluate_between(second, middle, between);
    const double slope = (split.down - now) / between;
    writer.combine(kX, {{kX, 1}, {middle, slope}, {second, -slope}});
    add_fresh(steps, normals, split);
    writer.end_step(first, next);
  }
}

// Lu et al. 2022b, algorithm 1 with r = 1/2.
void dpmpp_2s_ancestral(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    const Ancestral split = ancestral(steps.noise, now, next, steps.eta);
    steps.evaluate(first, i);
    if (split.down <= 0) {
      move_straight(steps, kX, now, split.down, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = halfway(steps.noise, now, split.down);
    move_straight(steps, middle, now, between, first);
    steps.evaluate_between(second, middle, between);
    move_straight(steps, kX, now, split.down, second);
    add_fresh(steps, normals, split);
    writer.end_step(first, next);
  }
}

// DPM-Solver++(2S) with fresh noise in both halves of a step. Both are one path of Brownian motion
// over sigma: the noise of the whole step is that of its first part and of the rest.
void dpmpp_sde(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register early = writer.add_register();
  const Register late = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(first, i);
    if (next <= 0) {
      move_straight(steps, kX, now, next, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = halfway(steps.noise, now, next);
    const Ancestral half = ancestral(steps.noise, now, between, steps.eta);
    const Ancestral whole = ancestral(steps.noise, now, next, steps.eta);
    move_straight(steps, middle, now, half.down, first);
    writer.draw(early);
    writer.combine(middle, {{middle, half.keep}, {early, half.fresh * steps.noise_scale}});
    steps.evaluate_between(second, middle, between);
    move_straight(steps, kX, now, whole.down, second);
    writer.draw(late);
    const double fresh = whole.fresh * steps.noise_scale;
    writer.combine(kX, {{kX, whole.keep},
                        {early, fresh * std::sqrt((now - between) / (now - next))},
                        {late, fresh * std::sqrt((between - next) / (now - next))}});
    writer.end_step(second, next);
  }
}

}  // namespace rbee::diffusion
