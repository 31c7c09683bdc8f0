#pragma once
// Plans of the samplers. Sources: Karras et al. 2022 (Euler, Heun, DPM2's place in it), Lu et al.
// 2022 (DPM-Solver++), Zhao et al. 2023 (UniPC), Song et al. 2021 (DDIM), Ho et al. 2020 (DDPM),
// Liu et al. 2022 (PNDM), Luo et al. 2023 (LCM), Zheng et al. 2024 (TCD), Chung et al. 2024
// (CFG++).

#include <optional>

#include "rbee/diffusion/levels.h"
#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/plan.h"

namespace rbee::diffusion {

struct SamplerOptions {
  Sampler sampler = Sampler::euler;
  // Share of fresh noise, 0 to 1. Absent: 1 for ancestral, SDE, DDPM and LCM, 0.3 for TCD, 0 for
  // DDIM. Others have none.
  std::optional<double> eta;
};

// Throws invalid_argument for eta out of range.
Plan make_plan(const NoiseModel& noise, const Levels& levels, const SamplerOptions& options);

// Calls of the model that AUTOMATIC1111 expects for a step, 1 or 2. A last step that ends without
// noise takes one nevertheless.
int32_t calls_per_step(Sampler sampler);

// Whether a plan asks for the unguided picture, so that guidance must evaluate both halves.
bool needs_unguided(Sampler sampler);

}  // namespace rbee::diffusion
