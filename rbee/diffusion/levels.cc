#include "rbee/diffusion/levels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/diffusion/scheduler_fields.h"
#include "rbee/diffusion/timesteps.h"

namespace rbee::diffusion {
namespace {

using Sigmas = std::vector<double>;

constexpr int32_t kMostSteps = 1000;
constexpr double kBeta = 0.6;  // both parameters, Lee et al. 2024
constexpr double kRho = 7;     // Karras et al. 2022, formula 5

// Sabour et al. 2024, for ten steps.
constexpr std::array kSmallTable = {14.615, 6.475, 3.861, 2.697, 1.886, 1.396,
                                    0.963,  0.652, 0.399, 0.152, 0.029};
constexpr std::array kLargeTable = {14.615, 6.315, 3.771, 2.181, 1.342, 0.862,
                                    0.555,  0.380, 0.234, 0.113, 0.029};

// i / (n - 1) for i < n, 0 for n = 1.
double share(int32_t i, int32_t n) {
  return n > 1 ? static_cast<double>(i) / (n - 1) : 0;
}

template <typename F>
Sigmas each(int32_t n, F&& sigma) {
  Sigmas out;
  for (int32_t i = 0; i < n; ++i) out.push_back(sigma(i));
  return out;
}

Sigmas exponential(double low, double high, int32_t n) {
  const double from = std::log(high);
  const double to = std::log(low);
  return each(n, [&](int32_t i) { return std::exp(from + share(i, n) * (to - from)); });
}

Sigmas beta(double low, double high, int32_t n) {
  return each(n, [&](int32_t i) {
    return low + beta_quantile(1 - share(i, n), kBeta, kBeta) * (high - low);
  });
}

Sigmas beta_timesteps(const NoiseModel& noise, int32_t n) {
  Sigmas out;
  const double last = static_cast<double>(noise.sigmas().size() - 1);
  for (int32_t i = 0; i < n; ++i) {
    const double t = beta_quantile(1 - static_cast<double>(i) / n, kBeta, kBeta);
    const double sigma = noise.sigmas()[static_cast<size_t>(std::nearbyint(t * last))];
    if (out.empty() || sigma != out.back()) out.push_back(sigma);
  }
  return out;
}

Sigmas kl_optimal(double low, double high, int32_t n) {
  return each(n, [&](int32_t i) {
    const double x = share(i, n);
    return std::tan(x * std::atan(low) + (1 - x) * std::atan(high));
  });
}

// The first half of the steps takes 1/40 of the way evenly, and the rest goes on with a square
// (Mochi's, as ComfyUI has it).
Sigmas linear_quadratic(double high, int32_t n) {
  constexpr double kFirstPart = 0.025;
  const int32_t half = n / 2;
  if (half == 0) return {high};
  const double rest = n - half;
  const double bend = (half - kFirstPart * n) / (rest * rest);
  return each(n, [&](int32_t i) {
    const double past = std::max(i - half, 0);
    return high * (1 - (kFirstPart * i + bend * past * past) / half);
  });
}

// Times from the last to the first, evenly, `points` of them; the first n are visited.
Sigmas even_times(const NoiseModel& noise, int32_t n, int32_t points) {
  const double last = noise.time(noise.sigma_max());
  const double first = noise.time(noise.sigma_min());
  return each(n, [&](int32_t i) { return noise.sigma(last + share(i, points) * (first - last)); });
}

Sigmas simple(const NoiseModel& noise, int32_t n) {
  const auto count = static_cast<int64_t>(noise.sigmas().size());
  return each(
      n, [&](int32_t i) { return noise.sigmas()[static_cast<size_t>(count - 1 - i * count / n)]; });
}

Sigmas ddim_uniform(const NoiseModel& noise, int32_t n) {
  const auto count = static_cast<int32_t>(noise.sigmas().size());
  const int32_t step = std::max(count / n, 1);
  Sigmas out;
  for (int32_t at = 1; at < count; at += step) {
    out.push_back(noise.sigmas()[static_cast<size_t>(at)]);
  }
  std::ranges::reverse(out);
  return out;
}

// The table's curve of log(sigma) over the way, read at n + 1 points; the last gives way to 0.
Sigmas align_your_steps(bool large, int32_t n) {
  const auto& table = large ? kLargeTable : kSmallTable;
  return each(n, [&](int32_t i) {
    const double at = static_cast<double>(i) / n * (table.size() - 1);
    const auto index = std::min(static_cast<size_t>(at), table.size() - 2);
    const double part = at - static_cast<double>(index);
    return std::exp((1 - part) * std::log(table[index]) + part * std::log(table[index + 1]));
  });
}

Sigmas named_sigmas(const NoiseModel& noise, const LevelOptions& options, int32_t n) {
  const double low = noise.sigma_min();
  const double high = noise.sigma_max();
  switch (options.schedule) {
    case Schedule::karras:
      return karras_sigmas(low, high, n);
    case Schedule::exponential:
    case Schedule::polyexponential:
      return exponential(low, high, n);
    case Schedule::sgm_uniform:
      return even_times(noise, n, n + 1);
    case Schedule::simple:
      return simple(noise, n);
    case Schedule::ddim_uniform:
      return ddim_uniform(noise, n);
    case Schedule::beta:
      return beta(low, high, n);
    case Schedule::beta_timesteps:
      return beta_timesteps(noise, n);
    case Schedule::kl_optimal:
      return kl_optimal(low, high, n);
    case Schedule::linear_quadratic:
      return linear_quadratic(high, n);
    case Schedule::align_your_steps:
      return align_your_steps(options.large_model, n);
    default:
      return even_times(noise, n, n);
  }
}

// Samplers of the variance-preserving form start from plain normal numbers, whatever the schedule.
bool starts_preserved(Sampler sampler) {
  switch (sampler) {
    case Sampler::ddim:
    case Sampler::ddim_cfg_pp:
    case Sampler::ddpm:
    case Sampler::plms:
    case Sampler::lcm:
    case Sampler::tcd:
      return true;
    default:
      return false;
  }
}

// k-diffusion's front ends leave the last but one level out for these.
bool skips_last_but_one(Sampler sampler) {
  return sampler == Sampler::dpm2 || sampler == Sampler::dpm2_ancestral ||
         sampler == Sampler::dpmpp_3m_sde;
}

Levels named_levels(const NoiseModel& noise, const LevelOptions& options) {
  const bool skips = skips_last_but_one(options.sampler) && options.steps > 1;
  Levels out;
  out.sigmas = named_sigmas(noise, options, options.steps + (skips ? 1 : 0));
  if (skips) out.sigmas.pop_back();
  for (const double sigma : out.sigmas) out.times.push_back(noise.time(sigma));
  const double first = out.sigmas.front();
  const bool preserved = starts_preserved(options.sampler);
  out.initial_scale = preserved && !noise.is_flow() ? std::sqrt(1 + first * first) : first;
  out.sigmas.push_back(0);
  return out;
}

// diffusers' pipelines of flows.
Levels flow_levels(const NoiseModel& noise, const LevelOptions& options) {
  const double count = noise.train_steps();
  Levels out;
  const double low = options.even_flow ? 1.0 / options.steps : noise.sigma_min();
  const double high = options.even_flow ? 1.0 : noise.sigma_max();
  out.sigmas = each(options.steps, [&](int32_t i) {
    return noise.shifted(high + share(i, options.steps) * (low - high));
  });
  for (const double sigma : out.sigmas) out.times.push_back(sigma * count);
  out.sigmas.push_back(0);
  return out;
}

// Karras, exponential or beta levels within a spacing. The multistep solvers take all levels of the
// model instead, and DPM-Solver rounds Karras' times.
void apply_sigma_schedule(const NoiseModel& noise, Schedule schedule, Sampler sampler,
                          Levels& out) {
  const bool all = grid_of(sampler) == TimestepGrid::one_more;
  const double low = all ? noise.sigma_min() : out.sigmas.back();
  const double high = all ? noise.sigma_max() : out.sigmas.front();
  const auto n = static_cast<int32_t>(out.sigmas.size());
  if (schedule == Schedule::karras) out.sigmas = karras_sigmas(low, high, n);
  if (schedule == Schedule::exponential) out.sigmas = exponential(low, high, n);
  if (schedule == Schedule::beta) out.sigmas = beta(low, high, n);
  for (size_t i = 0; i < out.sigmas.size(); ++i) {
    const double time = noise.time(out.sigmas[i]);
    out.times[i] = all && schedule == Schedule::karras ? std::nearbyint(time) : time;
  }
}

Levels spaced_levels(const NoiseModel& noise, const SchedulerConfig& config, Schedule spacing,
                     const LevelOptions& options) {
  const TimestepGrid grid = grid_of(options.sampler);
  Levels out;
  out.times = timesteps({.spacing = spacing,
                         .grid = grid,
                         .steps = options.steps,
                         .train_steps = noise.train_steps(),
                         .offset = config.steps_offset,
                         .consistency_steps = config.consistency_steps});
  for (const double time : out.times) out.sigmas.push_back(noise.sigma_between(time));
  if (config.sigma_schedule && options.schedule == Schedule::automatic &&
      has_sigma_schedules(options.sampler)) {
    apply_sigma_schedule(noise, *config.sigma_schedule, options.sampler, out);
  }
  const double first = out.sigmas.front();
  const bool sigma_form = grid == TimestepGrid::fractional && spacing != Schedule::leading;
  out.initial_scale = sigma_form ? first : std::sqrt(1 + first * first);
  const double last = end_sigma(options.sampler, config.ends_at_alpha_one, noise);
  out.sigmas.push_back(last);
  out.final_scale = 1 / std::sqrt(1 + last * last);
  return out;
}

bool is_spacing(Schedule schedule) {
  return schedule == Schedule::linspace || schedule == Schedule::leading ||
         schedule == Schedule::trailing;
}

}  // namespace

std::vector<double> karras_sigmas(double low, double high, int32_t n) {
  const double from = std::pow(high, 1 / kRho);
  const double to = std::pow(low, 1 / kRho);
  return each(n, [&](int32_t i) { return std::pow(from + share(i, n) * (to - from), kRho); });
}

int32_t most_steps(const NoiseModel& noise, const SchedulerConfig& config,
                   const LevelOptions& options) {
  const bool spaced = options.schedule == Schedule::automatic || is_spacing(options.schedule);
  if (!spaced || noise.is_flow()) return kMostSteps;
  const bool distilled = grid_of(options.sampler) == TimestepGrid::consistency;
  return distilled ? config.consistency_steps : noise.train_steps() - 1;
}

Levels make_levels(const NoiseModel& noise, const SchedulerConfig& config,
                   const LevelOptions& options) {
  check(options.steps >= 1 && options.steps <= kMostSteps, "steps", options.steps,
        " is outside of 1 to ", kMostSteps);
  const bool automatic = options.schedule == Schedule::automatic;
  if (!automatic && !is_spacing(options.schedule)) return named_levels(noise, options);
  if (noise.is_flow()) return flow_levels(noise, options);
  const Schedule own = config.spacing.value_or(customary_spacing(options.sampler));
  return spaced_levels(noise, config, automatic ? own : options.schedule, options);
}

Levels levels_from(const Levels& levels, int32_t first) {
  check(first >= 0 && first < levels.steps(), "levels", "step ", first, " is not within ",
        levels.steps());
  Levels out;
  out.sigmas.assign(levels.sigmas.begin() + first, levels.sigmas.end());
  out.times.assign(levels.times.begin() + first, levels.times.end());
  out.initial_scale = out.sigmas.front();
  out.final_scale = levels.final_scale;
  return out;
}

}  // namespace rbee::diffusion
