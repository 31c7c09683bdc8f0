// Samplers that look back at earlier pictures: DPM-Solver++ (Lu et al. 2022b) of order 2, its
// stochastic forms of order 2 and 3, and RES (Zhang et al. 2023) of order 2. h is a step in lambda
// = log(alpha / sigma), of RES in -log(sigma), as ComfyUI has it.

#include <utility>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

double step_in_lambda(const Steps& steps, int32_t i) {
  return steps.lambda(i + 1) - steps.lambda(i);
}

// x keeps sigma' / sigma * e^(-eta h), the picture has alpha' (1 - e^(-h - eta h)), and fresh noise
// sigma' sqrt(1 - e^(-2 eta h)), scaled.
struct Decay {
  double x, picture, fresh;
};
Decay decay(const Steps& steps, int32_t i, double eta) {
  const double h = step_in_lambda(steps, i);
  const double now = steps.sigma(i);
  const double next = steps.sigma(i + 1);
  if (next <= 0) return {0, 1, 0};
  if (eta == 0) return {next / now, steps.alpha(i + 1) - steps.alpha(i) * next / now, 0};
  return {next / now * std::exp(-eta * h), -steps.alpha(i + 1) * std::expm1(-h - eta * h),
          steps.noise_scale * next * std::sqrt(-std::expm1(-2 * eta * h))};
}

// The weight of the second order's term, the integral of the exponential's rest.
double second_weight(const Steps& steps, int32_t i, double eta) {
  const double whole = step_in_lambda(steps, i) * (1 + eta);
  return steps.alpha(i + 1) * (std::expm1(-whole) / whole + 1);
}

// How the line through the last two pictures is followed: half a step on, or by its own integral.
enum class Beyond : uint8_t { midpoint, heun };

void second_order(Steps& steps, double eta, Beyond beyond) {
  PlanWriter& writer = steps.writer;
  Register denoised = writer.add_register();
  Register before = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    const Decay d = decay(steps, i, eta);
    double slope = 0;
    if (i > 0 && !steps.ends_at(i)) {
      const bool heun = beyond == Beyond::heun;
      slope = (heun ? second_weight(steps, i, eta) : d.picture / 2) * step_in_lambda(steps, i) /
              step_in_lambda(steps, i - 1);
    }
    if (d.fresh > 0) writer.draw(normals);
    writer.combine(
        kX, {{kX, d.x}, {denoised, d.picture + slope}, {before, -slope}, {normals, d.fresh}});
    writer.end_step(denoised, steps.sigma(i + 1));
    std::swap(denoised, before);
  }
}

}  // namespace

void dpmpp_2m(Steps& steps) {
  second_order(steps, 0, Beyond::midpoint);
}

void dpmpp_2m_sde(Steps& steps) {
  second_order(steps, steps.eta, Beyond::midpoint);
}

void dpmpp_2m_sde_heun(Steps& steps) {
  second_order(steps, steps.eta, Beyond::heun);
}

double res_slope(const Steps& steps, int32_t i, double down, double down_before) {
  if (i == 0 || down <= 0) return 0;
  const double keep = down / steps.sigma(i);
  const double h = -std::log(keep);
  return (1 - (1 - keep) / h) * h / std::log(steps.sigma(i - 1) / down_before);
}

// For flows, too, (x - denoised) / sigma is the direction, so x keeps sigma' / sigma of both.
void res_multistep(Steps& steps, bool ancestral_steps) {
  PlanWriter& writer = steps.writer;
  Register denoised = writer.add_register();
  Register before = writer.add_register();
  const Register normals = writer.add_register();
  double down_before = 0;
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    const double next = steps.sigma(i + 1);
    const Ancestral split =
        ancestral(steps.noise, steps.sigma(i), next, ancestral_steps ? steps.eta : 0);
    const double keep = split.down / steps.sigma(i);
    const double slope = res_slope(steps, i, split.down, down_before);
    writer.combine(kX, {{kX, keep}, {denoised, 1 - keep + slope}, {before, -slope}});
    add_fresh(steps, normals, split);
    writer.end_step(denoised, next);
    down_before = split.down;
    std::swap(denoised, before);
  }
}

// The exponential integrator's first two corrections, from divided differences of the pictures.
void dpmpp_3m_sde(Steps& steps) {
  PlanWriter& writer = steps.writer;
  Register denoised = writer.add_register();
  Register before = writer.add_register();
  Register earlier = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    const Decay d = decay(steps, i, steps.eta);
    double now_factor = d.picture;
    double before_factor = 0;
    double earlier_factor = 0;
    if (i > 0 && !steps.ends_at(i)) {
      const double h = step_in_lambda(steps, i);
      const double whole = h * (1 + steps.eta);
      const double alpha = steps.alpha(i + 1);
      const double phi2 = second_weight(steps, i, steps.eta);
      const double r0 = step_in_lambda(steps, i - 1) / h;
      // slope = (denoised - before) / r0, and curvature from the slope before it
      double slope = phi2;
      double last_slope = 0;
      if (i > 1) {
        const double r1 = step_in_lambda(steps, i - 2) / h;
        const double phi3 = phi2 / whole - alpha / 2;
        const double curvature = phi2 * r0 / (r0 + r1) - phi3 / (r0 + r1);
        slope += curvature;
        last_slope = -curvature / r1;
      }
      now_factor += slope / r0;
      before_factor = -slope / r0 + last_slope;
      earlier_factor = -last_slope;
    }
    if (d.fresh > 0) writer.draw(normals);
    writer.combine(kX, {{kX, d.x},
                        {denoised, now_factor},
                        {before, before_factor},
                        {earlier, earlier_factor},
                        {normals, d.fresh}});
    writer.end_step(denoised, steps.sigma(i + 1));
    std::swap(before, earlier);
    std::swap(denoised, before);
  }
}

}  // namespace rbee::diffusion
