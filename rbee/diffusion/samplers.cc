#include "rbee/diffusion/samplers.h"

#include <algorithm>
#include <iterator>
#include <numbers>

#include "rbee/core/error.h"
#include "rbee/diffusion/adaptive.h"
#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

double customary_eta(Sampler sampler) {
  if (sampler == Sampler::ddim || sampler == Sampler::ddim_cfg_pp) return 0;
  return sampler == Sampler::tcd ? 0.3 : 1;
}

bool scales_noise(Sampler sampler) {
  return sampler != Sampler::ddim && sampler != Sampler::ddim_cfg_pp && sampler != Sampler::ddpm &&
         sampler != Sampler::lcm && sampler != Sampler::tcd;
}

// write: writes the steps into a plan. calls: see calls_per_step(). unguided: see needs_unguided().
struct Row {
  Sampler sampler;
  void (*write)(Steps&);
  int32_t calls = 1;
  bool unguided = false;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {Sampler::euler, [](Steps& s) { euler(s, false); }},
    {Sampler::euler_ancestral, [](Steps& s) { euler(s, true); }},
    {Sampler::heun, heun, 2},
    {Sampler::dpm2, [](Steps& s) { dpm2(s, false); }, 2},
    {Sampler::dpm2_ancestral, [](Steps& s) { dpm2(s, true); }, 2},
    {Sampler::dpmpp_2s_ancestral, dpmpp_2s_ancestral, 2},
    {Sampler::dpmpp_2m, dpmpp_2m},
    {Sampler::dpmpp_2m_sde, dpmpp_2m_sde},
    {Sampler::dpmpp_2m_sde_heun, dpmpp_2m_sde_heun},
    {Sampler::dpmpp_3m_sde, dpmpp_3m_sde},
    {Sampler::dpmpp_sde, dpmpp_sde, 2},
    {Sampler::lms, lms},
    {Sampler::ddim, [](Steps& s) { euler(s, true); }},
    {Sampler::ddpm, [](Steps& s) { euler(s, true); }},
    {Sampler::plms, plms},
    {Sampler::unipc, unipc},
    {Sampler::lcm, lcm},
    {Sampler::tcd, tcd},
    {Sampler::euler_cfg_pp, [](Steps& s) { euler_cfg_pp(s, false); }, 1, true},
    {Sampler::euler_ancestral_cfg_pp, [](Steps& s) { euler_cfg_pp(s, true); }, 1, true},
    {Sampler::ddim_cfg_pp, [](Steps& s) { euler_cfg_pp(s, true); }, 1, true},
    {Sampler::restart, restart, 2},
    {Sampler::deis, deis},
    {Sampler::dpm_fast, dpm_fast},
    {Sampler::dpm_adaptive, [](Steps&) {}},  // its steps depend on values
    {Sampler::ipndm, [](Steps& s) { ipndm(s, false); }},
    {Sampler::ipndm_v, [](Steps& s) { ipndm(s, true); }},
    {Sampler::res_multistep, [](Steps& s) { res_multistep(s, false); }},
    {Sampler::gradient_estimation, gradient_estimation},
    {Sampler::heunpp2, heunpp2, 3},
    {Sampler::seeds_2, seeds_2, 2},
    {Sampler::seeds_3, seeds_3, 3},
    {Sampler::exp_heun_2_x0, [](Steps& s) { exp_heun_2_x0(s, false); }, 2},
    {Sampler::exp_heun_2_x0_sde, [](Steps& s) { exp_heun_2_x0(s, true); }, 2},
    {Sampler::er_sde, er_sde},
    {Sampler::sa_solver, [](Steps& s) { sa_solver(s, false); }},
    {Sampler::sa_solver_pece, [](Steps& s) { sa_solver(s, true); }, 2},
    {Sampler::res_multistep_ancestral, [](Steps& s) { res_multistep(s, true); }},
    {Sampler::dpmpp_2m_cfg_pp, dpmpp_2m_cfg_pp, 1, true},
    {Sampler::dpmpp_2s_ancestral_cfg_pp, dpmpp_2s_ancestral_cfg_pp, 2, true},
    {Sampler::res_multistep_cfg_pp, [](Steps& s) { res_multistep_cfg_pp(s, false); }, 1, true},
    {Sampler::res_multistep_ancestral_cfg_pp, [](Steps& s) { res_multistep_cfg_pp(s, true); }, 1,
     true},
    {Sampler::gradient_estimation_cfg_pp, gradient_estimation_cfg_pp, 1, true},
};

const Row& row_of(Sampler sampler) {
  return kRows[static_cast<size_t>(sampler)];
}

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].sampler != static_cast<Sampler>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

// For discrete models the variances add up. A flow also loses signal when noise rises again, so
// what is kept shrinks (the form of ComfyUI and stable-diffusion.cpp).
Ancestral ancestral(const NoiseModel& noise, double from, double to, double eta) {
  if (eta <= 0 || to <= 0) return {.down = to};
  if (!noise.is_flow()) {
    const double up = std::min(to, eta * to * std::sqrt(from * from - to * to) / from);
    return {.down = std::sqrt(to * to - up * up), .keep = 1, .fresh = up};
  }
  const double down = to * (1 + (to / from - 1) * eta);
  const double keep = (1 - to) / (1 - down);
  const double kept = down * keep;
  return {.down = down, .keep = keep, .fresh = std::sqrt(std::max(to * to - kept * kept, 0.0))};
}

void add_fresh(Steps& steps, Register normals, const Ancestral& split) {
  if (split.fresh <= 0) return;
  steps.writer.draw(normals);
  steps.writer.combine(kX, {{kX, split.keep}, {normals, split.fresh * steps.noise_scale}});
}

double add_churn(Steps& steps, Register normals, int32_t i) {
  const double now = steps.sigma(i);
  const Churn& churn = steps.churn;
  if (churn.amount <= 0) return now;
  steps.writer.draw(normals);
  if (now < churn.low || now > churn.high) return now;
  const double gamma = std::min(churn.amount / steps.count(), std::numbers::sqrt2 - 1);
  const double higher = now * (1 + gamma);
  const double fresh = std::sqrt(higher * higher - now * now) * steps.noise_scale;
  steps.writer.combine(kX, {{kX, 1}, {normals, fresh}});
  return higher;
}

std::vector<double> levels_with_signal(const Steps& steps) {
  std::vector<double> out = steps.levels.sigmas;
  constexpr double kAlmostNoise = 0.9999;  // of the model's time
  if (steps.noise.is_flow() && out.front() >= 1) out.front() = steps.noise.shifted(kAlmostNoise);
  return out;
}

Plan make_plan(const NoiseModel& noise, const Levels& levels, const SamplerOptions& options) {
  check(levels.steps() >= 1 && levels.sigmas.size() == levels.times.size() + 1, "sampler",
        "there are no levels");
  if (options.churn.amount > 0 && noise.is_flow()) {
    fail(Code::unsupported, "s_churn", "models of flow matching have no such noise; leave it at 0");
  }
  const double scale = scales_noise(options.sampler) ? options.noise_scale : 1;
  const double eta = options.eta.value_or(customary_eta(options.sampler));
  Steps steps{noise, levels, eta, options.churn, scale, {}};
  check(steps.eta >= 0 && steps.eta <= 1, "eta", steps.eta, " is outside of 0 to 1");
  row_of(options.sampler).write(steps);
  Plan plan = steps.writer.finish(levels.final_scale);
  if (options.sampler == Sampler::dpm_adaptive) {
    plan.registers = AdaptiveSteps::kRegisters;
    plan.adaptive = std::make_shared<AdaptiveSteps>(
        noise, AdaptiveSteps::Options{.from = levels.sigmas.front(),
                                      .to = least_sigma(noise, levels.sigmas.front()),
                                      .eta = eta,
                                      .noise_scale = scale,
                                      .steps = levels.steps()});
  }
  return plan;
}

int32_t calls_per_step(Sampler sampler) {
  return row_of(sampler).calls;
}

bool needs_unguided(Sampler sampler) {
  return row_of(sampler).unguided;
}

}  // namespace rbee::diffusion
