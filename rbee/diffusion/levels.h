#pragma once
// The noise levels that a sampler visits.
//
// Schedules named after timestep spacings, and Schedule::automatic, follow diffusers, so that a
// model's own scheduler_config.json gives the pictures that diffusers gives. The others follow
// k-diffusion as AUTOMATIC1111 and ComfyUI use it: they span all levels of the model, and the time
// of a level is interpolated.

#include <cstdint>
#include <vector>

#include "rbee/diffusion/names.h"
#include "rbee/diffusion/noise_model.h"

namespace rbee::diffusion {

struct Levels {
  std::vector<double> sigmas;  // falling, one more than there are steps; the last is the end's
  std::vector<double> times;   // the model's time of each level but the last
  double initial_scale = 1;    // of the normal numbers that sampling starts from
  double final_scale = 1;      // of sampling's result, 1 / sqrt(1 + sigma^2) of its noise

  int32_t steps() const { return static_cast<int32_t>(times.size()); }
};

struct LevelOptions {
  Sampler sampler = Sampler::euler;
  Schedule schedule = Schedule::automatic;
  int32_t steps = 20;
  // For flows under Schedule::automatic: levels from 1 to 1 / steps, as in FLUX's pipeline, instead
  // of to the smallest trained level, as in Stable Diffusion 3's.
  bool even_flow = false;
  bool large_model = false;  // the table of Align Your Steps: SDXL's instead of SD 1.5's
};

// Two schedules may give another number of steps: ddim_uniform if the number does not divide the
// timesteps, and beta_timesteps if timesteps would repeat. Throws invalid_argument for steps
// outside 1 to most_steps().
Levels make_levels(const NoiseModel& noise, const SchedulerConfig& config,
                   const LevelOptions& options);

// The most steps that make_levels takes of such options.
int32_t most_steps(const NoiseModel& noise, const SchedulerConfig& config,
                   const LevelOptions& options);

// Only the levels from step `first` on, for img2img. Throws invalid_argument if there is no such
// step.
Levels levels_from(const Levels& levels, int32_t first);

// n levels from high to low, both included; only high for n = 1. Karras et al. 2022, formula 5.
std::vector<double> karras_sigmas(double low, double high, int32_t n);

// x with I_x(a, b) = p, the regularised incomplete beta function's inverse. a, b > 0, p within 0
// to 1.
double beta_quantile(double p, double a, double b);

}  // namespace rbee::diffusion
