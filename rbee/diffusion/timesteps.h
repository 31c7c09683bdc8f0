#pragma once
// diffusers' ways of choosing timesteps, each class with its own rounding.

#include <cstdint>
#include <optional>
#include <vector>

#include "rbee/diffusion/names.h"
#include "rbee/diffusion/noise_model.h"

namespace rbee::diffusion {

enum class Grid : uint8_t {
  whole,        // DDIM, DDPM, PNDM: whole timesteps
  fractional,   // Euler and its kin: linspace is not rounded
  one_more,     // DPM-Solver, UniPC, DEIS: one point more than steps, the last left out
  consistency,  // LCM, TCD: a selection of the timesteps that the model was distilled on
};
Grid grid_of(Sampler sampler);

// The spacing of the sampler's class in diffusers where a configuration names none.
Schedule customary_spacing(Sampler sampler);

struct TimestepOptions {
  Schedule spacing = Schedule::leading;  // linspace, leading or trailing
  Grid grid = Grid::whole;
  int32_t steps = 20;
  int32_t train_steps = 1000;
  int32_t offset = 0;  // added under leading spacing
  int32_t consistency_steps = 50;
};
// Falling; options.steps of them. Throws invalid_argument for more steps than there are timesteps.
std::vector<double> timesteps(const TimestepOptions& options);

// Where a sampler ends: at no noise, or at the first timestep's.
double end_sigma(Sampler sampler, std::optional<bool> ends_at_alpha_one, const NoiseModel& noise);

}  // namespace rbee::diffusion
