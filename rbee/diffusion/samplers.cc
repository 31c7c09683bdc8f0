#include "rbee/diffusion/samplers.h"

#include <algorithm>
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

void write_steps(Steps& steps, Sampler sampler) {
  switch (sampler) {
    case Sampler::euler:
      return euler(steps, false);
    case Sampler::euler_ancestral:
    case Sampler::ddim:
    case Sampler::ddpm:
      return euler(steps, true);
    case Sampler::euler_cfg_pp:
      return euler_cfg_pp(steps, false);
    case Sampler::euler_ancestral_cfg_pp:
    case Sampler::ddim_cfg_pp:
      return euler_cfg_pp(steps, true);
    case Sampler::heun:
      return heun(steps);
    case Sampler::dpm2:
      return dpm2(steps, false);
    case Sampler::dpm2_ancestral:
      return dpm2(steps, true);
    case Sampler::dpmpp_2s_ancestral:
      return dpmpp_2s_ancestral(steps);
    case Sampler::dpmpp_2m:
      return dpmpp_2m(steps);
    case Sampler::dpmpp_2m_sde:
      return dpmpp_2m_sde(steps);
    case Sampler::dpmpp_2m_sde_heun:
      return dpmpp_2m_sde_heun(steps);
    case Sampler::dpmpp_3m_sde:
      return dpmpp_3m_sde(steps);
    case Sampler::dpmpp_sde:
      return dpmpp_sde(steps);
    case Sampler::lms:
      return lms(steps);
    case Sampler::plms:
      return plms(steps);
    case Sampler::unipc:
      return unipc(steps);
    case Sampler::lcm:
      return lcm(steps);
    case Sampler::tcd:
      return tcd(steps);
    case Sampler::restart:
      return restart(steps);
    case Sampler::deis:
      return deis(steps);
    case Sampler::dpm_fast:
      return dpm_fast(steps);
    case Sampler::ipndm:
      return ipndm(steps, false);
    case Sampler::ipndm_v:
      return ipndm(steps, true);
    case Sampler::res_multistep:
      return res_multistep(steps);
    case Sampler::gradient_estimation:
      return gradient_estimation(steps);
    case Sampler::dpm_adaptive:
      return;  // its steps depend on values
  }
}

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
  write_steps(steps, options.sampler);
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
  switch (sampler) {
    case Sampler::heun:
    case Sampler::dpm2:
    case Sampler::dpm2_ancestral:
    case Sampler::dpmpp_2s_ancestral:
    case Sampler::dpmpp_sde:
    case Sampler::restart:
      return 2;
    default:
      return 1;
  }
}

bool needs_unguided(Sampler sampler) {
  return sampler == Sampler::euler_cfg_pp || sampler == Sampler::euler_ancestral_cfg_pp ||
         sampler == Sampler::ddim_cfg_pp;
}

}  // namespace rbee::diffusion
