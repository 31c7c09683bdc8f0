#include "rbee/diffusion/noise_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rbee/core/error.h"

namespace rbee::diffusion {
namespace {

constexpr double kLastAlpha = 0x1p-24;  // in place of 0, whose sigma is infinite
constexpr double kMaxBeta = 0.999;      // of the cosine curve

// Nichol and Dhariwal 2021, formula 17.
double cosine_alpha(double t) {
  const double c = std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2);
  return c * c;
}

std::vector<double> betas(const SchedulerConfig& config) {
  if (!config.trained_betas.empty()) return config.trained_betas;
  const int32_t count = config.train_steps;
  std::vector<double> out(static_cast<size_t>(count));
  const bool scaled = config.beta_curve == BetaCurve::scaled_linear;
  const double first = scaled ? std::sqrt(config.beta_start) : config.beta_start;
  const double last = scaled ? std::sqrt(config.beta_end) : config.beta_end;
  for (int32_t i = 0; i < count; ++i) {
    double& beta = out[static_cast<size_t>(i)];
    if (config.beta_curve == BetaCurve::squared_cosine) {
      const double now = static_cast<double>(i) / count;
      const double next = static_cast<double>(i + 1) / count;
      beta = std::min(1 - cosine_alpha(next) / cosine_alpha(now), kMaxBeta);
      continue;
    }
    const double value = first + (last - first) * i / (count - 1);
    beta = scaled ? value * value : value;
  }
  return out;
}

// Lin et al. 2023, algorithm 1: sqrt(alphas) are shifted until the last is 0, and scaled so that
// the first stays.
void end_without_signal(std::vector<double>& alphas) {
  const double first = std::sqrt(alphas.front());
  const double last = std::sqrt(alphas.back());
  for (double& alpha : alphas) {
    const double root = (std::sqrt(alpha) - last) * first / (first - last);
    alpha = root * root;
  }
  // With many timesteps the last but one may have less.
  alphas.back() = std::min(kLastAlpha, alphas[alphas.size() - 2]);
}

// The share of `value` between the neighbours in a rising list, as index + fraction; clamped.
double position(const std::vector<double>& rising, double value) {
  if (value <= rising.front()) return 0;
  if (value >= rising.back()) return static_cast<double>(rising.size() - 1);
  const auto above = std::ranges::upper_bound(rising, value);
  const auto index = static_cast<size_t>(above - rising.begin()) - 1;
  return static_cast<double>(index) + (value - rising[index]) / (rising[index + 1] - rising[index]);
}

double interpolated(const std::vector<double>& values, double at) {
  const double clamped = std::clamp(at, 0.0, static_cast<double>(values.size() - 1));
  const auto index = std::min(static_cast<size_t>(clamped), values.size() - 2);
  const double share = clamped - static_cast<double>(index);
  return values[index] + share * (values[index + 1] - values[index]);
}

double flow_shift(const FlowShift& flow, int64_t image_tokens) {
  if (!flow.dynamic) return flow.shift;
  const double slope =
      (flow.max_shift - flow.base_shift) / static_cast<double>(flow.max_tokens - flow.base_tokens);
  return std::exp(flow.base_shift + slope * static_cast<double>(image_tokens - flow.base_tokens));
}

}  // namespace

std::vector<double> cumulative_alphas(const SchedulerConfig& config) {
  std::vector<double> out = betas(config);
  check(out.size() >= 2, "noise", out.size(), " betas are less than 2");
  double product = 1;
  for (double& value : out) {
    check(value > 0 && value < 1, "noise", "beta ", value, " is not between 0 and 1");
    product *= 1 - value;
    value = product;
  }
  if (config.zero_terminal_snr) end_without_signal(out);
  return out;
}

NoiseModel::NoiseModel(const SchedulerConfig& config, int64_t image_tokens)
    : prediction_(config.prediction), train_steps_(config.train_steps) {
  if (is_flow()) {
    shift_ = flow_shift(config.flow, image_tokens);
    check(std::isnormal(shift_) && shift_ > 0, "noise", "the shift of ", image_tokens,
          " tokens is ", shift_, ", which is no number to shift by");
    fill_flow();
  } else {
    fill_discrete(config);
  }
}

void NoiseModel::fill_discrete(const SchedulerConfig& config) {
  sigmas_ = cumulative_alphas(config);
  train_steps_ = static_cast<int32_t>(sigmas_.size());
  for (double& value : sigmas_) value = std::sqrt((1 - value) / value);
  const bool numbers = std::ranges::all_of(sigmas_, [](double v) { return std::isnormal(v); });
  check(numbers, "noise", "the betas leave all of a picture at some timestep, or nothing");
  for (const double value : sigmas_) log_sigmas_.push_back(std::log(value));
}

void NoiseModel::fill_flow() {
  for (int32_t i = 1; i <= train_steps_; ++i) {
    sigmas_.push_back(shifted(static_cast<double>(i) / train_steps_));
  }
}

double NoiseModel::shifted(double t) const {
  return shift_ * t / (1 + (shift_ - 1) * t);
}

double NoiseModel::lambda(double sigma) const {
  return std::log(alpha(sigma)) - std::log(sigma);
}

double NoiseModel::sigma_of_lambda(double lambda) const {
  return is_flow() ? 1 / (1 + std::exp(lambda)) : std::exp(-lambda);
}

double NoiseModel::sigma(double time) const {
  if (is_flow()) return shifted(time / train_steps_);
  return std::exp(interpolated(log_sigmas_, time));
}

double NoiseModel::sigma_between(double time) const {
  return is_flow() ? sigma(time) : interpolated(sigmas_, time);
}

double NoiseModel::time(double sigma) const {
  if (is_flow()) return sigma * train_steps_;
  return position(log_sigmas_, std::log(sigma));
}

Scaling NoiseModel::scaling(double sigma) const {
  const double root = std::sqrt(1 + sigma * sigma);
  switch (prediction_) {
    case Prediction::epsilon:
      return {1 / root, 1, -sigma};
    case Prediction::v_prediction:
      return {1 / root, 1 / (1 + sigma * sigma), -sigma / root};
    case Prediction::sample:
      return {1 / root, 0, 1};
    case Prediction::flow:
      return {1, 1, -sigma};
  }
  return {};
}

}  // namespace rbee::diffusion
