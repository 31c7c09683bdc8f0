#include "rbee/diffusion/adaptive.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/diffusion/sampler_steps.h"
#include "rbee/diffusion/samplers/dpm_solver.h"

namespace rbee::diffusion {
namespace {

constexpr double kFirstLength = 0.05;
constexpr double kArrived = 1e-5;  // of log(sigma)
constexpr Register kDirection = 5, kAhead = 6, kSecond = 7, kNormals = 8;

std::vector<Instruction> taken_from(PlanWriter& writer) {
  writer.end_step(AdaptiveSteps::kDenoised, 0);
  return std::move(writer.finish(1).steps.front().work);
}

}  // namespace

AdaptiveSteps::AdaptiveSteps(NoiseModel noise, const Options& options)
    : noise_(std::move(noise)), options_(options), sigma_(options.from), length_(kFirstLength) {}

bool AdaptiveSteps::arrived() const {
  return std::log(sigma_ / options_.to) <= kArrived;
}

int32_t AdaptiveSteps::steps_done() const {
  if (arrived()) return options_.steps;
  const double share = std::log(options_.from / sigma_) / std::log(options_.from / options_.to);
  return std::min(static_cast<int32_t>(share * options_.steps), options_.steps - 1);
}

double AdaptiveSteps::target() const {
  return std::max(options_.to, sigma_ * std::exp(-length_));
}

std::vector<Instruction> AdaptiveSteps::trial() const {
  PlanWriter writer;
  const DpmSolver solver{writer, noise_, {kDenoised, kDirection, kAhead, kSecond}};
  const double down = bounded_ancestral(noise_, {sigma_, target(), options_.eta}, options_.to).down;
  solver.look(kDirection, kX, sigma_);
  solver.look_ahead(sigma_, down, DpmSolver::kThird);
  solver.second_order(kLow, sigma_, down, DpmSolver::kThird);
  solver.look_further(sigma_, down);
  solver.third_order(kHigh, sigma_, down);
  return taken_from(writer);
}

// k-diffusion's controller has coefficients for the errors' proportion, sum and difference, of
// which its sampler leaves the sum alone: the length changes by error^(-1 / order), and slowly.
std::vector<Instruction> AdaptiveSteps::judge(double error) {
  constexpr double kLeast = 0.81;
  constexpr double kTiny = 1e-8;
  const double order = options_.eta > 0 ? 1.5 : 3;
  if (++trials_ > kMaxTrials) {
    fail(Code::unsupported, "sampler", "DPM adaptive is at noise level ", sigma_, " after ",
         kMaxTrials, " trials; choose another sampler, or a lower guidance_scale");
  }
  const bool is_number = std::isfinite(error);
  const double factor = 1 + std::atan(std::pow(1 / (error + kTiny), 1 / order) - 1);
  const double to = target();
  if (is_number) length_ *= factor;
  if (is_number && factor < kLeast) return {};
  PlanWriter writer;
  const Ancestral split = bounded_ancestral(noise_, {sigma_, to, options_.eta}, options_.to);
  writer.combine(kBefore, {{kLow, 1}});
  writer.combine(kX, {{kHigh, 1}});
  if (split.fresh > 0) {
    writer.draw(kNormals);
    writer.combine(kX, {{kX, split.keep}, {kNormals, split.fresh * options_.noise_scale}});
  }
  sigma_ = is_number ? to : options_.to;
  return taken_from(writer);
}

double trial_error(const std::vector<float>& low, const std::vector<float>& high,
                   const std::vector<float>& before) {
  constexpr double kAbsolute = 0.0078;
  constexpr double kRelative = 0.05;
  double sum = 0;
  for (size_t i = 0; i < low.size(); ++i) {
    const double size = std::max(std::abs(double{low[i]}), std::abs(double{before[i]}));
    const double off = (double{low[i]} - double{high[i]}) / std::max(kAbsolute, kRelative * size);
    sum += off * off;
  }
  return std::sqrt(sum / static_cast<double>(low.size()));
}

double least_sigma(const NoiseModel& noise, double from) {
  return std::min(noise.sigma_min(), from / 2);
}

}  // namespace rbee::diffusion
