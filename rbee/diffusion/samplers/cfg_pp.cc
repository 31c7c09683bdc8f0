// CFG++ (Chung et al. 2024): the guided picture, and the direction of the unguided one. Forms of
// Euler's method (the paper's algorithm 2), DPM-Solver++, RES and gradient estimation as ComfyUI
// has them; of a flow, pictures count alpha times.

#include <utility>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

struct Pictures {
  explicit Pictures(PlanWriter& writer)
      : guided(writer.add_register()), unguided(writer.add_register()) {}
  Register guided, unguided;
};

// x = the guided picture, and the unguided direction's noise of level `to`.
void jump(Steps& steps, double from, double to, const Pictures& pictures) {
  const double ratio = to / from;
  steps.writer.combine(kX, {{kX, ratio},
                            {pictures.unguided, -ratio * steps.noise.alpha(from)},
                            {pictures.guided, steps.noise.alpha(to)}});
}

}  // namespace

void euler_cfg_pp(Steps& steps, bool ancestral_steps) {
  const Pictures pictures(steps.writer);
  const Register normals = steps.writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(pictures.guided, i, pictures.unguided);
    const Ancestral split = ancestral(steps.noise, now, next, ancestral_steps ? steps.eta : 0);
    jump(steps, now, split.down, pictures);
    add_fresh(steps, normals, split);
    steps.writer.end_step(pictures.guided, next);
  }
}

void dpmpp_2m_cfg_pp(Steps& steps) {
  Pictures pictures(steps.writer);
  Register before = steps.writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(pictures.guided, i, pictures.unguided);
    jump(steps, now, next, pictures);
    if (i > 0 && !steps.ends_at(i)) {
      const double picture = steps.alpha(i + 1) - steps.alpha(i) * next / now;
      const double slope = picture / 2 * (steps.lambda(i + 1) - steps.lambda(i)) /
                           (steps.lambda(i) - steps.lambda(i - 1));
      steps.writer.combine(kX, {{kX, 1}, {pictures.guided, slope}, {before, -slope}});
    }
    steps.writer.end_step(pictures.guided, next);
    std::swap(pictures.unguided, before);
  }
}

// Both calls of a step go along the unguided picture; what guidance adds comes at its end.
void dpmpp_2s_ancestral_cfg_pp(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Pictures pictures(writer);
  const Register middle = writer.add_register();
  const Register guided = writer.add_register(), unguided = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    const Ancestral split = ancestral(steps.noise, now, next, steps.eta);
    steps.evaluate(pictures.guided, i, pictures.unguided);
    if (split.down <= 0) {
      move_straight(steps, kX, now, split.down, pictures.unguided);
    } else {
      const double between = halfway(steps.noise, now, split.down);
      move_straight(steps, middle, now, between, pictures.unguided);
      writer.evaluate(guided, middle, between, steps.noise.time(between), unguided);
      move_straight(steps, kX, now, split.down, unguided);
    }
    add_fresh(steps, normals, split);
    const double alpha = steps.alpha(i + 1);
    writer.combine(kX, {{kX, 1}, {pictures.guided, alpha}, {pictures.unguided, -alpha}});
    writer.end_step(pictures.guided, next);
  }
}

void res_multistep_cfg_pp(Steps& steps, bool ancestral_steps) {
  PlanWriter& writer = steps.writer;
  Pictures pictures(writer);
  Register before = writer.add_register();
  const Register normals = writer.add_register();
  double down_before = 0;
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(pictures.guided, i, pictures.unguided);
    const Ancestral split = ancestral(steps.noise, now, next, ancestral_steps ? steps.eta : 0);
    if (i == 0 || split.down <= 0) {
      jump(steps, now, split.down, pictures);
    } else {
      const double keep = split.down / now;
      const double slope = res_slope(steps, i, split.down, down_before);
      const double guidance = keep * steps.alpha(i);
      writer.combine(kX, {{kX, keep},
                          {pictures.guided, guidance},
                          {pictures.unguided, 1 - keep + slope - guidance},
                          {before, -slope}});
    }
    add_fresh(steps, normals, split);
    writer.end_step(pictures.guided, next);
    down_before = split.down;
    std::swap(pictures.unguided, before);
  }
}

}  // namespace rbee::diffusion
