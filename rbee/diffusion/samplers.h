#pragma once
// Plans of the samplers. Sources: Karras et al. 2022 (Euler, Heun, DPM2's place in it), Lu et al.
// 2022 (DPM-Solver++), Zhao et al. 2023 (UniPC), Song et al. 2021 (DDIM), Ho et al. 2020 (DDPM),
// Liu et al. 2022 (PNDM), Luo et al. 2023 (LCM), Zheng et al. 2024 (TCD), Chung et al. 2024
// (CFG++), Xu et al. 2023 (Restart), Zhang and Chen 2023 (DEIS), Lu et al. 2022a (DPM-Solver),
// Zhang et al. 2023 (RES), Gonzalez et al. 2023 (SEEDS), Cui et al. 2023 (ER SDE), Xue et al. 2023
// (SA).

#include <limits>
#include <optional>

#include "rbee/diffusion/levels.h"
#include "rbee/diffusion/noise_model.h"
#include "rbee/diffusion/plan.h"

namespace rbee::diffusion {

// Noise that Euler, Heun and DPM2 add before a step, up to a level 1 + gamma times as high (Karras
// et al. 2022, algorithm 2). For levels from `low` to `high`, gamma is amount / steps, at most
// sqrt(2) - 1; else it is 0. Numbers are drawn at every step. Other samplers have no churn.
struct Churn {
  double amount = 0;  // 0 = off
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
};

struct SamplerOptions {
  Sampler sampler = Sampler::euler;
  // Share of fresh noise, 0 to 1. Absent: 1 for ancestral samplers, SDE, DDPM and LCM, and for DPM
  // fast and adaptive (A1111 gives them the ancestral eta); 0.3 for TCD, 0 for DDIM. Others have no
  // eta.
  std::optional<double> eta;
  Churn churn;
  // Standard deviation of the noise of churn, restarts, and ancestral and SDE samplers. Does not
  // apply to DDIM, DDPM, LCM and TCD.
  double noise_scale = 1;
};

// Throws invalid_argument for eta out of range, and unsupported for churn on flows.
Plan make_plan(const NoiseModel& noise, const Levels& levels, const SamplerOptions& options);

// The model calls that AUTOMATIC1111 counts for a step, 1 to 3. A last step to zero noise really
// takes one.
int32_t calls_per_step(Sampler sampler);

// Whether a plan asks for the unguided picture, so that guidance must evaluate both halves.
bool needs_unguided(Sampler sampler);

}  // namespace rbee::diffusion
