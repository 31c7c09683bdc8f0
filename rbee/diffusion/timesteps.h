#pragma once
// Chooses timesteps as diffusers' scheduler classes do, each with its own rounding.

#include <cstdint>
#include <optional>
#include <vector>

#include "rbee/diffusion/names.h"
#include "rbee/diffusion/noise_model.h"

namespace rbee::diffusion {

enum class TimestepGrid : uint8_t {
  whole,        // DDIM, DDPM, PNDM: whole timesteps
  fractional,   // Euler and its kin: linspace is not rounded
  one_more,     // DPM-Solver, UniPC, DEIS: one point more than steps, without the last
  consistency,  // LCM, TCD: a selection of the timesteps on which the model was distilled
};
TimestepGrid grid_of(Sampler sampler);

// The spacing of the sampler's class in diffusers if the config names none.
Schedule customary_spacing(Sampler sampler);

struct TimestepOptions {
  Schedule spacing = Schedule::leading;  // linspace, leading or trailing
  TimestepGrid grid = TimestepGrid::whole;
  int32_t steps = 20;
  int32_t train_steps = 1000;
  int32_t offset = 0;  // added with leading spacing
  int32_t consistency_steps = 50;
};
// Gives options.steps timesteps, falling. Throws invalid_argument for more steps than timesteps.
std::vector<double> timesteps(const TimestepOptions& options);

// The level at which a sampler ends: zero noise, or the first timestep's.
double end_sigma(Sampler sampler, std::optional<bool> ends_at_alpha_one, const NoiseModel& noise);

}  // namespace rbee::diffusion
