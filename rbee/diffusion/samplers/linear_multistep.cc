// Adams-Bashforth methods on the noise direction d = (x - alpha denoised) / sigma: of uneven steps
// (LMS), of uneven ones in log(sigma) (DEIS, Zhang and Chen 2023), and of even ones after a
// trapezoidal start (PLMS, Liu et al. 2022 without Runge-Kutta) or a straight one (IPNDM, of even
// steps or, as IPNDM_V, of uneven ones, as ComfyUI has them); and gradient estimation (Permenter
// and Yuan 2024), which goes along the direction that the last two lead to.

#include <algorithm>
#include <array>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

constexpr int32_t kOrder = 4;
constexpr double kGamma = 2;  // of gradient estimation
// For even steps, by order; the newest direction first.
constexpr std::array<std::array<double, kOrder>, kOrder> kFactors = {
    {{1, 0, 0, 0},
     {3.0 / 2, -1.0 / 2, 0, 0},
     {23.0 / 12, -16.0 / 12, 5.0 / 12, 0},
     {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}}};

// Direction registers in a ring; the newest is written in place of the oldest.
struct Directions {
  explicit Directions(PlanWriter& writer) {
    for (Register& r : ring) r = writer.add_register();
  }
  Register at(int32_t i) const { return ring[static_cast<size_t>(i % kOrder)]; }

  std::array<Register, kOrder> ring{};
};

// For flows (x - denoised) / sigma is the velocity, so this holds for both.
void set_direction(Steps& steps, Register target, double sigma, Register denoised) {
  steps.writer.combine(target, {{kX, 1 / sigma}, {denoised, -1 / sigma}});
}

// x along the newest directions, as if all steps were as long as step i.
void move_evenly(Steps& steps, int32_t i, const Directions& directions) {
  const double h = steps.sigma(i + 1) - steps.sigma(i);
  const int32_t order = std::min(i + 1, kOrder);
  std::vector<Term> terms{{kX, 1}};
  for (int32_t j = 0; j < order; ++j) {
    const double factor = kFactors[static_cast<size_t>(order) - 1][static_cast<size_t>(j)];
    terms.push_back({directions.at(i - j), h * factor});
  }
  steps.writer.combine(kX, std::move(terms));
}

// The integral over step i of Lagrange's polynomial that is 1 at level i - j and 0 at the other
// levels i - k, k < order. Gauss-Legendre with two points is exact up to degree 3.
double lagrange_integral(const Steps& steps, int32_t i, int32_t j, int32_t order) {
  const double from = steps.sigma(i);
  const double half = (steps.sigma(i + 1) - from) / 2;
  double sum = 0;
  for (const double node : {-std::sqrt(1.0 / 3), std::sqrt(1.0 / 3)}) {
    const double at = from + half * (1 + node);
    double value = 1;
    for (int32_t k = 0; k < order; ++k) {
      if (k == j) continue;
      value *= (at - steps.sigma(i - k)) / (steps.sigma(i - j) - steps.sigma(i - k));
    }
    sum += value;
  }
  return sum * half;
}

// x along the newest directions, with the lengths of their steps.
void move_unevenly(Steps& steps, int32_t i, const Directions& directions) {
  const int32_t order = std::min(i + 1, kOrder);
  std::vector<Term> terms{{kX, 1}};
  for (int32_t j = 0; j < order; ++j) {
    terms.push_back({directions.at(i - j), lagrange_integral(steps, i, j, order)});
  }
  steps.writer.combine(kX, std::move(terms));
}

// The integral over step i of the line in log(sigma) that is 1 at level `one` and 0 at `zero`.
double log_line_integral(const Steps& steps, int32_t i, int32_t one, int32_t zero) {
  const double base = std::log(steps.sigma(zero));
  const auto primitive = [&](double sigma) { return sigma * (std::log(sigma) - base - 1); };
  return (primitive(steps.sigma(i + 1)) - primitive(steps.sigma(i))) /
         (std::log(steps.sigma(one)) - base);
}

}  // namespace

void lms(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    set_direction(steps, directions.at(i), steps.sigma(i), denoised);
    move_unevenly(steps, i, directions);
    writer.end_step(denoised, steps.sigma(i + 1));
  }
}

// A step to no noise is straight.
void ipndm(Steps& steps, bool uneven) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    set_direction(steps, directions.at(i), steps.sigma(i), denoised);
    if (steps.ends_at(i)) {
      move_straight(steps, kX, steps.sigma(i), steps.sigma(i + 1), denoised);
    } else {
      (uneven ? move_unevenly : move_evenly)(steps, i, directions);
    }
    writer.end_step(denoised, steps.sigma(i + 1));
  }
}

// As CFG++ (Chung et al. 2024): the straight part goes from the guided picture, and all directions
// are the unguided one's.
void gradient_estimation_cfg_pp(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register guided = writer.add_register(), unguided = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double next = steps.sigma(i + 1);
    steps.evaluate(guided, i, unguided);
    set_direction(steps, directions.at(i), steps.sigma(i), unguided);
    // x - sigma * direction is the unguided picture, also of a flow.
    std::vector<Term> terms{{kX, 1},
                            {directions.at(i), next - steps.sigma(i)},
                            {guided, steps.alpha(i + 1)},
                            {unguided, -steps.alpha(i + 1)}};
    if (i > 0 && !steps.ends_at(i)) {
      const double more = (kGamma - 1) * (next - steps.sigma(i));
      terms[1].factor += more;
      terms.push_back({directions.at(i - 1), -more});
    }
    writer.combine(kX, std::move(terms));
    writer.end_step(guided, next);
  }
}

void gradient_estimation(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    set_direction(steps, directions.at(i), steps.sigma(i), denoised);
    if (i == 0 || steps.ends_at(i)) {
      move_straight(steps, kX, steps.sigma(i), steps.sigma(i + 1), denoised);
    } else {
      const double h = steps.sigma(i + 1) - steps.sigma(i);
      writer.combine(
          kX, {{kX, 1}, {directions.at(i), h * kGamma}, {directions.at(i - 1), h * (1 - kGamma)}});
    }
    writer.end_step(denoised, steps.sigma(i + 1));
  }
}

// Of order 2, as diffusers has it; of order 1 also at the end of few steps, and to no noise.
void deis(Steps& steps) {
  constexpr int32_t kFew = 15;
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(denoised, i);
    set_direction(steps, directions.at(i), steps.sigma(i), denoised);
    const bool lowered = i + 1 == steps.count() && steps.count() < kFew;
    if (i == 0 || lowered || steps.ends_at(i)) {
      move_straight(steps, kX, steps.sigma(i), steps.sigma(i + 1), denoised);
    } else {
      writer.combine(kX, {{kX, 1},
                          {directions.at(i), log_line_integral(steps, i, i, i - 1)},
                          {directions.at(i - 1), log_line_integral(steps, i, i - 1, i)}});
    }
    writer.end_step(denoised, steps.sigma(i + 1));
  }
}

// The first step calls the model at both its ends and goes along the mean of the directions.
void plms(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register denoised = writer.add_register();
  const Register ahead = writer.add_register();
  const Directions directions(writer);
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = steps.sigma(i);
    const double h = steps.sigma(i + 1) - now;
    steps.evaluate(denoised, i);
    set_direction(steps, directions.at(i), now, denoised);
    if (i == 0 && steps.count() > 1) {
      const double next = steps.sigma(1);
      writer.combine(ahead, {{kX, 1}, {directions.at(0), h}});
      writer.evaluate(denoised, ahead, next, steps.levels.times[1]);
      const double half = h / 2;
      writer.combine(
          kX, {{kX, 1}, {directions.at(0), half}, {ahead, half / next}, {denoised, -half / next}});
    } else {
      move_evenly(steps, i, directions);
    }
    writer.end_step(denoised, steps.sigma(i + 1));
  }
}

}  // namespace rbee::diffusion
