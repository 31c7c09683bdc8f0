#include "rbee/diffusion/samplers/dpm_solver.h"

#include <algorithm>

#include "rbee/diffusion/adaptive.h"

namespace rbee::diffusion {
namespace {

// The level after a part of a step.
double level_at(double from, double to, double part) {
  return from * std::pow(to / from, part);
}

// (e^h - 1) / h - 1
double curvature(double h) {
  return std::expm1(h) / h - 1;
}

// So that they call the model n times.
std::vector<int32_t> orders_of(int32_t n) {
  const int32_t steps = n / 3 + 1;
  std::vector<int32_t> out(static_cast<size_t>(steps), 3);
  out.back() = n % 3 == 0 ? 1 : n % 3;
  if (n % 3 == 0) out[out.size() - 2] = 2;
  return out;
}

}  // namespace

Ancestral bounded_ancestral(const NoiseModel& noise, const AncestralStep& step, double least) {
  const Ancestral split = ancestral(noise, step.from, step.to, step.eta);
  if (split.down >= least) return split;
  const double keep = noise.alpha(step.to) / noise.alpha(least);
  const double kept = keep * least;
  return {.down = least,
          .keep = keep,
          .fresh = std::sqrt(std::max(step.to * step.to - kept * kept, 0.0))};
}

void DpmSolver::look(Register target, Register source, double sigma) const {
  writer.evaluate(r.denoised, source, sigma, noise.time(sigma));
  writer.combine(target, {{source, 1 / sigma}, {r.denoised, -1 / sigma}});
}

void DpmSolver::look_ahead(double from, double to, double part) const {
  const double there = level_at(from, to, part);
  first_order(r.ahead, from, there);
  look(r.second, r.ahead, there);
}

void DpmSolver::look_further(double from, double to) const {
  constexpr double kPart = 2.0 / 3;
  const double there = level_at(from, to, kPart);
  const double bend = there * kPart / kThird * curvature(kPart * std::log(from / to));
  writer.combine(r.ahead, {{kX, 1}, {r.direction, there - from + bend}, {r.second, -bend}});
  look(r.second, r.ahead, there);
}

void DpmSolver::first_order(Register target, double from, double to) const {
  writer.combine(target, {{kX, 1}, {r.direction, to - from}});
}

void DpmSolver::second_order(Register target, double from, double to, double part) const {
  const double bend = (from - to) / (2 * part);
  writer.combine(target, {{kX, 1}, {r.direction, to - from + bend}, {r.second, -bend}});
}

void DpmSolver::third_order(Register target, double from, double to) const {
  const double bend = to * 3 / 2 * curvature(std::log(from / to));
  writer.combine(target, {{kX, 1}, {r.direction, to - from + bend}, {r.second, -bend}});
}

// k-diffusion's sample_dpm_fast: steps of even length in log(sigma), of order 3 but for the last
// ones. A call of the model counts as a step; x moves with the last one of its solver's step.
void dpm_fast(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const DpmSolver solver{
      writer,
      steps.noise,
      {writer.add_register(), writer.add_register(), writer.add_register(), writer.add_register()}};
  const Register normals = writer.add_register();
  const Register denoised = solver.r.denoised;
  const double first = steps.sigma(0);
  const double least = least_sigma(steps.noise, first);
  const std::vector<int32_t> orders = orders_of(steps.count());
  for (size_t i = 0; i < orders.size(); ++i) {
    const auto level = [&](size_t index) {
      return level_at(first, least,
                      static_cast<double>(index) / static_cast<double>(orders.size()));
    };
    const double from = level(i);
    const double to = i + 1 < orders.size() ? level(i + 1) : least;
    const Ancestral split = bounded_ancestral(steps.noise, {from, to, steps.eta}, least);
    solver.look(solver.r.direction, kX, from);
    if (orders[i] > 1) {
      writer.end_step(denoised, from);
      solver.look_ahead(from, split.down, orders[i] > 2 ? DpmSolver::kThird : DpmSolver::kHalf);
    }
    if (orders[i] > 2) {
      writer.end_step(denoised, from);
      solver.look_further(from, split.down);
    }
    if (orders[i] == 1) solver.first_order(kX, from, split.down);
    if (orders[i] == 2) solver.second_order(kX, from, split.down, DpmSolver::kHalf);
    if (orders[i] == 3) solver.third_order(kX, from, split.down);
    add_fresh(steps, normals, split);
    writer.end_step(denoised, to);
  }
}

}  // namespace rbee::diffusion
