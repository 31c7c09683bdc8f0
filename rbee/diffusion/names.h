#pragma once
// Samplers and noise schedules, under the names of AUTOMATIC1111, ComfyUI, diffusers and
// stable-diffusion.cpp.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::diffusion {

// On flow-matching models, all of these follow the model's flow; "flow Euler" and "flow Heun" are
// euler and heun there.
enum class Sampler : uint8_t {
  euler,
  euler_ancestral,
  heun,
  dpm2,
  dpm2_ancestral,
  dpmpp_2s_ancestral,
  dpmpp_2m,
  dpmpp_2m_sde,
  dpmpp_2m_sde_heun,
  dpmpp_3m_sde,
  dpmpp_sde,
  lms,
  ddim,
  ddpm,
  plms,
  unipc,
  lcm,
  tcd,
  euler_cfg_pp,
  euler_ancestral_cfg_pp,
  ddim_cfg_pp,
  restart,
  deis,
  dpm_fast,
  dpm_adaptive,
  ipndm,
  ipndm_v,
  res_multistep,
  gradient_estimation,
  heunpp2,
  seeds_2,
  seeds_3,
  exp_heun_2_x0,
  exp_heun_2_x0_sde,
  er_sde,
  sa_solver,
  sa_solver_pece,
  res_multistep_ancestral,
  dpmpp_2m_cfg_pp,
  dpmpp_2s_ancestral_cfg_pp,
  res_multistep_cfg_pp,
  res_multistep_ancestral_cfg_pp,
  gradient_estimation_cfg_pp,
};

enum class Schedule : uint8_t {
  automatic,  // the model's own, from its scheduler config
  normal,     // timesteps from the last to 0, evenly; "Uniform" of A1111, "discrete"
  karras,
  exponential,
  polyexponential,
  sgm_uniform,
  simple,
  ddim_uniform,
  beta,            // noise levels at the quantiles of Beta(0.6, 0.6), as diffusers and A1111
  beta_timesteps,  // timesteps at those quantiles, as ComfyUI and stable-diffusion.cpp
  kl_optimal,
  linear_quadratic,
  align_your_steps,
  linspace,  // diffusers' spacings of timesteps
  leading,
  trailing,
};

struct SamplerName {
  Sampler sampler;
  std::string_view name;  // as A1111 writes it in a picture's parameters
  std::span<const std::string_view> aliases;
};
struct ScheduleName {
  Schedule schedule;
  std::string_view name;
  std::span<const std::string_view> aliases;
};

// Every sampler and schedule once, in the order of the enumerations.
std::span<const SamplerName> sampler_names();
std::span<const ScheduleName> schedule_names();
std::string_view name(Sampler sampler);
std::string_view name(Schedule schedule);

struct SamplerChoice {
  Sampler sampler = Sampler::euler;
  std::optional<Schedule> schedule;  // of combined names such as "DPM++ 2M Karras"
};
// Ignores letter case, spaces, "_" and "-". Throws invalid_argument listing the known names.
SamplerChoice parse_sampler(std::string_view text);
Schedule parse_schedule(std::string_view text);

// The schedule of A1111's "Automatic" for a sampler: karras, exponential or normal.
Schedule customary_schedule(Sampler sampler);

}  // namespace rbee::diffusion
