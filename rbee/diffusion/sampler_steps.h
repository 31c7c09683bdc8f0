#pragma once
// Helpers of all samplers.

#include <cmath>
#include <vector>

#include "rbee/diffusion/samplers.h"

namespace rbee::diffusion {

// A sampler that writes a plan: levels by index, registers by role.
struct Steps {
  const NoiseModel& noise;
  const Levels& levels;
  double eta;
  Churn churn;
  double noise_scale;
  PlanWriter writer;

  int32_t count() const { return levels.steps(); }
  double sigma(int32_t i) const { return levels.sigmas[static_cast<size_t>(i)]; }
  double alpha(int32_t i) const { return noise.alpha(sigma(i)); }
  double lambda(int32_t i) const { return noise.lambda(sigma(i)); }
  bool ends_at(int32_t i) const { return sigma(i + 1) <= 0; }

  // denoised = the model's estimate for x at level i
  void evaluate(Register denoised, int32_t i, Register unguided = -1) {
    writer.evaluate(denoised, kX, sigma(i), levels.times[static_cast<size_t>(i)], unguided);
  }
  // The same if x has more noise than level i.
  void evaluate_at(Register denoised, int32_t i, double level) {
    if (level == sigma(i)) return evaluate(denoised, i);
    evaluate_between(denoised, kX, level);
  }
  // The same for another register, and a level between those of the list.
  void evaluate_between(Register denoised, Register source, double level) {
    writer.evaluate(denoised, source, level, noise.time(level));
  }
};

// target = x moved from `from` to `to` along the line through x and the denoised picture:
// to / from * x + (alpha' - alpha to / from) * denoised.
inline void move_straight(Steps& steps, Register target, double from, double to,
                          Register denoised) {
  const double ratio = to / from;
  const double weight = steps.noise.alpha(to) - steps.noise.alpha(from) * ratio;
  steps.writer.combine(target, {{kX, ratio}, {denoised, weight}});
}

// Adds the churn of step i to x, and gives x's new level.
double add_churn(Steps& steps, Register normals, int32_t i);

// Splits a step from `from` to `to` into a straight move down to `down` and x = keep * x + fresh *
// noise.
struct Ancestral {
  double down = 0, keep = 1, fresh = 0;
};
Ancestral ancestral(const NoiseModel& noise, double from, double to, double eta);

// Adds the fresh noise, if any, after a straight move to `split.down`.
void add_fresh(Steps& steps, Register normals, const Ancestral& split);

// The level halfway between two in log(alpha / sigma). A flow begins without any signal; it is
// taken to begin a little later.
double halfway(const NoiseModel& noise, double from, double to);

// The levels of `steps`, where a flow begins with a little signal, so that log(alpha / sigma) is
// finite.
std::vector<double> levels_with_signal(const Steps& steps);

// What RES of order 2 adds of (this picture - the one before) in a straight move from level i to
// `down`, after one to `down_before`. 0 at the first step and at a move to no noise.
double res_slope(const Steps& steps, int32_t i, double down, double down_before);

void euler(Steps& steps, bool ancestral_steps);
void euler_cfg_pp(Steps& steps, bool ancestral_steps);
void heun(Steps& steps);
void dpm2(Steps& steps, bool ancestral_steps);
void dpmpp_2s_ancestral(Steps& steps);
void dpmpp_2m(Steps& steps);
void dpmpp_2m_sde(Steps& steps);
void dpmpp_2m_sde_heun(Steps& steps);
void dpmpp_3m_sde(Steps& steps);
void dpmpp_sde(Steps& steps);
void lms(Steps& steps);
void plms(Steps& steps);
void unipc(Steps& steps);
void lcm(Steps& steps);
void tcd(Steps& steps);
void restart(Steps& steps);
void deis(Steps& steps);
void dpm_fast(Steps& steps);
void ipndm(Steps& steps, bool uneven);
void res_multistep(Steps& steps, bool ancestral_steps);
void res_multistep_cfg_pp(Steps& steps, bool ancestral_steps);
void gradient_estimation(Steps& steps);
void gradient_estimation_cfg_pp(Steps& steps);
void dpmpp_2m_cfg_pp(Steps& steps);
void dpmpp_2s_ancestral_cfg_pp(Steps& steps);
void heunpp2(Steps& steps);
void seeds_2(Steps& steps);
void seeds_3(Steps& steps);
void exp_heun_2_x0(Steps& steps, bool fresh_noise);
void er_sde(Steps& steps);
void sa_solver(Steps& steps, bool evaluates_twice);

}  // namespace rbee::diffusion
