#include "rbee/engine/image_guide.h"

#include <array>

#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/reduce.h"

namespace rbee::engine {
namespace {

using diffusion::weighted_sum;

// Sums over all axes but the first, which stay with size 1.
Tensor sample_sums(const Tensor& x) {
  constexpr std::array kAxes = {Axis{1}, Axis{2}, Axis{3}};
  return reduce(ReduceOp::sum, x, kAxes);
}

// The standard deviation of each sample, (batch, 1, 1, 1).
Tensor deviation(const Tensor& x) {
  const auto count = static_cast<double>(x.numel() / x.dim(0));
  const Tensor centred = x - affine(sample_sums(x), 1 / count, 0);
  return unary(UnaryOp::sqrt, affine(sample_sums(unary(UnaryOp::sqr, centred)), 1 / count, 0));
}

Tensor filled(int64_t count, double value, Device& device) {
  Tensor out = empty({count}, DType::f32, device);
  fill_(out, value);
  return out;
}

}  // namespace

Tensor RepeatedDenoiser::operator()(const Tensor& x, const Tensor& times, int64_t calls_left) {
  constexpr int64_t kWorthRecording = 4;  // recording takes about as long as a step
  if (!recording_) {
    const bool records = warm_ && calls_left >= kWorthRecording;
    warm_ = true;
    if (!records || !Recording::supported(x.device())) {
      return denoiser_(x, times, conditioning_);
    }
    record(x, times);
  }
  copy_(x_, x);
  copy_(times_, times);
  recording_.replay();
  return result_;
}

void RepeatedDenoiser::record(const Tensor& x, const Tensor& times) {
  x_ = empty(x.shape(), x.dtype(), x.device());
  times_ = empty(times.shape(), times.dtype(), times.device());
  recording_ = Recording(x.device(), [&] { result_ = denoiser_(x_, times_, conditioning_); });
}

Guide::Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise,
             const PromptStates& states, int64_t batch, const GuideOptions& options)
    : noise_(noise),
      options_(options),
      both_(options.scale > 1 || options.unguided),
      text_(both_ ? joined(repeated(states.negative, batch), repeated(states.positive, batch))
                  : repeated(states.positive, batch)),
      conditioning_(denoiser.prepare(text_)),
      denoiser_(denoiser),
      repeated_(denoiser, *conditioning_),
      controls_(options.controls, text_) {}

diffusion::Evaluation Guide::evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                      StepPlace place) {
  const diffusion::Scaling scaling = noise_.scaling(sigma);
  const int64_t batch = x.dim(0);
  const auto halves = [&](const Tensor& half) {
    return both_ ? concat({half, half}, Axis{0}) : half;
  };
  const Tensor scaled = affine(x, scaling.in, 0);
  const Tensor seen = halves(scaled);
  const Tensor times = filled(seen.dim(0), time, x.device());
  const std::optional<models::ControlStates> control = controls_(seen, times, place);
  const Tensor input =
      options_.extra.defined() ? halves(concat({scaled, options_.extra}, Axis{3})) : seen;
  // What a control adds is computed anew for each step.
  const Tensor output = control ? denoiser_(input, times, *conditioning_, &*control)
                                : repeated_(input, times, place.count - place.index);
  const auto picture = [&](const Tensor& said) {
    if (scaling.skip == 0) return affine(said, scaling.out, 0);
    return weighted_sum({{&x, scaling.skip}, {&said, scaling.out}});
  };
  if (!both_) return {picture(output), {}};
  const Tensor negative = output.slice(Axis{0}, 0, batch);
  const Tensor positive = output.slice(Axis{0}, batch, batch);
  Tensor guided =
      weighted_sum({{&negative, 1.0 - options_.scale}, {&positive, double{options_.scale}}});
  if (options_.rescale > 0) guided = with_deviation_of(guided, positive, options_.rescale);
  return {picture(guided), unguided ? picture(negative) : Tensor{}};
}

Tensor with_deviation_of(const Tensor& x, const Tensor& like, double amount) {
  const Tensor moved = x * (deviation(like) / deviation(x));
  return weighted_sum({{&moved, amount}, {&x, 1 - amount}});
}

}  // namespace rbee::engine
