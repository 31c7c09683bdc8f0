// Samplers of two calls a step: Heun's method, alone and with restarts, the midpoint rule
// (DPM-Solver-2) and DPM-Solver++(2S); and Heun++, which calls three times.

#include <algorithm>
#include <array>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

struct Level {
  double sigma, time;
};

struct HeunRegisters {
  explicit HeunRegisters(PlanWriter& writer)
      : first(writer.add_register()),
        ahead(writer.add_register()),
        second(writer.add_register()),
        normals(writer.add_register()) {}

  Register first, ahead, second, normals;
};

// To no noise it is Euler's step, at one call.
void heun_step(Steps& steps, const HeunRegisters& r, Level from, Level to) {
  PlanWriter& writer = steps.writer;
  writer.evaluate(r.first, kX, from.sigma, from.time);
  if (to.sigma <= 0) {
    move_straight(steps, kX, from.sigma, to.sigma, r.first);
  } else {
    move_straight(steps, r.ahead, from.sigma, to.sigma, r.first);
    writer.evaluate(r.second, r.ahead, to.sigma, to.time);
    const double half = (to.sigma - from.sigma) / 2;
    writer.combine(kX, {{kX, 1 + half / from.sigma},
                        {r.first, -half / from.sigma},
                        {r.ahead, half / to.sigma},
                        {r.second, -half / to.sigma}});
  }
  writer.end_step(r.first, to.sigma);
}

size_t nearest(const std::vector<double>& sigmas, double level) {
  const auto distance = [&](double sigma) { return std::abs(sigma - level); };
  return static_cast<size_t>(std::ranges::min_element(sigmas, {}, distance) - sigmas.begin());
}

// The levels of restart(), which rise where a restart begins: with AUTOMATIC1111's choice of
// restarts, for which 20 steps and more are taken on fewer of Karras' levels, from the one nearest
// to 0.1 to that nearest to 2. A flow has these ratios of noise to signal at other levels.
std::vector<double> restarted_sigmas(const Steps& steps) {
  const int32_t n = steps.count();
  if (n < 20) return steps.levels.sigmas;
  const int32_t restarts = n < 36 ? 1 : 2;
  const int32_t length = n < 36 ? 9 : n / 4;
  std::vector<double> way =
      karras_sigmas(steps.sigma(n - 1), steps.sigma(0), n - length * restarts);
  way.push_back(0);
  const auto level = [&](double ratio) {
    return steps.noise.is_flow() ? ratio / (1 + ratio) : ratio;
  };
  const size_t low = nearest(way, level(0.1));
  const size_t high = nearest(way, level(2));
  if (high >= low) return way;
  const std::vector<double> again = karras_sigmas(way[low], way[high], length + 1);
  const auto rest = way.begin() + static_cast<std::ptrdiff_t>(low) + 1;
  std::vector<double> out(way.begin(), rest);
  for (int32_t i = 0; i < restarts; ++i) out.insert(out.end(), again.begin(), again.end());
  out.insert(out.end(), rest, way.end());
  return out;
}

}  // namespace

double halfway(const NoiseModel& noise, double from, double to) {
  if (!noise.is_flow()) return std::sqrt(from * to);
  constexpr double kAlmostNoise = 0.9999;
  const double middle =
      (noise.lambda(std::min(from, kAlmostNoise)) + noise.lambda(std::min(to, kAlmostNoise))) / 2;
  return noise.sigma_of_lambda(middle);
}

// Karras et al. 2022, algorithm 2.
void heun(Steps& steps) {
  const HeunRegisters registers(steps.writer);
  const auto level = [&](int32_t i) {
    return Level{steps.sigma(i),
                 i < steps.count() ? steps.levels.times[static_cast<size_t>(i)] : 0};
  };
  for (int32_t i = 0; i < steps.count(); ++i) {
    Level from = level(i);
    const double now = add_churn(steps, registers.normals, i);
    if (now != from.sigma) from = {now, steps.noise.time(now)};
    heun_step(steps, registers, from, level(i + 1));
  }
}

// Xu et al. 2023, algorithm 1: Heun's steps, and noise that takes x from a low level back up to a
// high one, whose way down is gone again.
void restart(Steps& steps) {
  const HeunRegisters registers(steps.writer);
  const std::vector<double> sigmas = restarted_sigmas(steps);
  for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
    const double now = sigmas[i];
    const double next = sigmas[i + 1];
    if (next > now) {
      const double keep = steps.noise.alpha(next) / steps.noise.alpha(now);
      const double kept = keep * now;
      const double fresh = std::sqrt(next * next - kept * kept);
      add_fresh(steps, registers.normals, {.down = now, .keep = keep, .fresh = fresh});
      continue;
    }
    heun_step(steps, registers, {now, steps.noise.time(now)}, {next, steps.noise.time(next)});
  }
}

// Follows the mean of the directions at the ends of this step and the next one, the later ones with
// less weight. As ComfyUI has it, after Carzit's samplers for AUTOMATIC1111.
void heunpp2(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register normals = writer.add_register();
  const Register ahead = writer.add_register();
  const std::array<Register, 3> pictures = {writer.add_register(), writer.add_register(),
                                            writer.add_register()};
  const std::array<Register, 3> directions = {writer.add_register(), writer.add_register(),
                                              writer.add_register()};
  for (int32_t i = 0; i < steps.count(); ++i) {
    double level = add_churn(steps, normals, i);
    const double change = steps.sigma(i + 1) - level;
    const int32_t calls = std::min(3, steps.count() - i);
    double rest = 1;  // of the weights
    std::vector<Term> terms{{kX, 1}};
    Register source = kX;
    for (int32_t j = 0; j < calls; ++j) {
      const Register picture = pictures[static_cast<size_t>(j)];
      const Register direction = directions[static_cast<size_t>(j)];
      if (j == 0) {
        steps.evaluate_at(picture, i, level);
      } else {
        steps.evaluate_between(picture, source, level);
        const double weight = level / (calls * steps.sigma(0));
        terms.push_back({direction, weight * change});
        rest -= weight;
      }
      writer.combine(direction, {{source, 1 / level}, {picture, -1 / level}});
      if (j + 1 == calls) break;
      const double next = steps.sigma(i + j + 1);
      writer.combine(ahead, {{source, 1}, {direction, next - level}});
      source = ahead;
      level = next;
    }
    terms.push_back({directions[0], rest * change});
    writer.combine(kX, std::move(terms));
    writer.end_step(pictures[0], steps.sigma(i + 1));
  }
}

void dpm2(Steps& steps, bool ancestral_steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = ancestral_steps ? steps.sigma(i) : add_churn(steps, normals, i);
    const double next = steps.sigma(i + 1);
    const Ancestral split = ancestral(steps.noise, now, next, ancestral_steps ? steps.eta : 0);
    steps.evaluate_at(first, i, now);
    if (split.down <= 0) {
      move_straight(steps, kX, now, split.down, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = std::sqrt(now * split.down);
    move_straight(steps, middle, now, between, first);
    steps.evaluate_between(second, middle, between);
    const double slope = (split.down - now) / between;
    writer.combine(kX, {{kX, 1}, {middle, slope}, {second, -slope}});
    add_fresh(steps, normals, split);
    writer.end_step(first, next);
  }
}

// Lu et al. 2022b, algorithm 1 with r = 1/2.
void dpmpp_2s_ancestral(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register normals = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    const Ancestral split = ancestral(steps.noise, now, next, steps.eta);
    steps.evaluate(first, i);
    if (split.down <= 0) {
      move_straight(steps, kX, now, split.down, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = halfway(steps.noise, now, split.down);
    move_straight(steps, middle, now, between, first);
    steps.evaluate_between(second, middle, between);
    move_straight(steps, kX, now, split.down, second);
    add_fresh(steps, normals, split);
    writer.end_step(first, next);
  }
}

// DPM-Solver++(2S) with fresh noise in both halves of a step. Both are one path of Brownian motion
// over sigma: the noise of the whole step is that of its first part and of the rest.
void dpmpp_sde(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register first = writer.add_register();
  const Register middle = writer.add_register();
  const Register second = writer.add_register();
  const Register early = writer.add_register();
  const Register late = writer.add_register();
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double next = steps.sigma(i + 1);
    steps.evaluate(first, i);
    if (next <= 0) {
      move_straight(steps, kX, now, next, first);
      writer.end_step(first, next);
      continue;
    }
    const double between = halfway(steps.noise, now, next);
    const Ancestral half = ancestral(steps.noise, now, between, steps.eta);
    const Ancestral whole = ancestral(steps.noise, now, next, steps.eta);
    move_straight(steps, middle, now, half.down, first);
    writer.draw(early);
    writer.combine(middle, {{middle, half.keep}, {early, half.fresh * steps.noise_scale}});
    steps.evaluate_between(second, middle, between);
    move_straight(steps, kX, now, whole.down, second);
    writer.draw(late);
    const double fresh = whole.fresh * steps.noise_scale;
    writer.combine(kX, {{kX, whole.keep},
                        {early, fresh * std::sqrt((now - between) / (now - next))},
                        {late, fresh * std::sqrt((between - next) / (now - next))}});
    writer.end_step(second, next);
  }
}

}  // namespace rbee::diffusion
