#include "rbee/diffusion/timesteps.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"

namespace rbee::diffusion {
namespace {

// Of diffusers' linspace(0, train_steps - 1, points), reversed.
double linspace_at(int32_t i, int32_t points, int32_t train_steps) {
  if (points == 1) return 0;
  return static_cast<double>(train_steps - 1) * (points - 1 - i) / (points - 1);
}

double time_at(const TimestepOptions& options, int32_t i) {
  const int32_t points = options.steps + (options.grid == TimestepGrid::one_more ? 1 : 0);
  switch (options.spacing) {
    case Schedule::linspace: {
      const double time = linspace_at(i, points, options.train_steps);
      return options.grid == TimestepGrid::fractional ? time : std::nearbyint(time);
    }
    case Schedule::trailing: {
      const double ratio = static_cast<double>(options.train_steps) / options.steps;
      return std::nearbyint(options.train_steps - i * ratio) - 1;
    }
    default:
      return (points - 1 - i) * (options.train_steps / points) + options.offset;
  }
}

// Luo et al. 2023: every (train_steps / consistency_steps)th timestep was distilled; the steps take
// evenly spread ones of them, from the last on.
std::vector<double> consistency_times(const TimestepOptions& options) {
  const int32_t count = options.consistency_steps;
  check(options.steps <= count, "steps", options.steps, " are more than the ", count,
        " that the model was distilled on");
  check(count <= options.train_steps, "sampler", "it takes steps among ", count,
        " timesteps, the model was trained on ", options.train_steps);
  const int32_t ratio = options.train_steps / count;
  std::vector<double> out;
  for (int32_t i = 0; i < options.steps; ++i) {
    const auto from_last = static_cast<int32_t>(int64_t{i} * count / options.steps);
    out.push_back((count - from_last) * ratio - 1);
  }
  return out;
}

}  // namespace

TimestepGrid grid_of(Sampler sampler) {
  switch (sampler) {
    case Sampler::ddim:
    case Sampler::ddim_cfg_pp:
    case Sampler::ddpm:
    case Sampler::plms:
      return TimestepGrid::whole;
    case Sampler::dpmpp_2m:
    case Sampler::dpmpp_2m_sde:
    case Sampler::dpmpp_2m_sde_heun:
    case Sampler::dpmpp_3m_sde:
    case Sampler::unipc:
    case Sampler::deis:
      return TimestepGrid::one_more;
    case Sampler::lcm:
    case Sampler::tcd:
      return TimestepGrid::consistency;
    default:
      return TimestepGrid::fractional;
  }
}

Schedule customary_spacing(Sampler sampler) {
  const TimestepGrid grid = grid_of(sampler);
  return grid == TimestepGrid::whole || grid == TimestepGrid::consistency ? Schedule::leading
                                                                          : Schedule::linspace;
}

std::vector<double> timesteps(const TimestepOptions& options) {
  check(options.steps < options.train_steps, "steps", options.steps, " are not less than the ",
        options.train_steps, " timesteps of the model");
  if (options.grid == TimestepGrid::consistency) return consistency_times(options);
  std::vector<double> out;
  for (int32_t i = 0; i < options.steps; ++i) {
    out.push_back(std::clamp(time_at(options, i), 0.0, options.train_steps - 1.0));
  }
  return out;
}

double end_sigma(Sampler sampler, std::optional<bool> ends_at_alpha_one, const NoiseModel& noise) {
  switch (sampler) {
    case Sampler::ddim:
    case Sampler::ddim_cfg_pp:
      return ends_at_alpha_one.value_or(true) ? 0 : noise.sigma_min();
    case Sampler::plms:
      return ends_at_alpha_one.value_or(false) ? 0 : noise.sigma_min();
    case Sampler::tcd:
    case Sampler::deis:
      return noise.sigma_min();
    default:
      return 0;
  }
}

}  // namespace rbee::diffusion
