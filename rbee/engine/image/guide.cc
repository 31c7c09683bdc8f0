#include "rbee/engine/image/guide.h"

#include <algorithm>
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
  const double count = static_cast<double>(x.numel()) / static_cast<double>(x.dim(0));
  const Tensor centred = x - affine(sample_sums(x), 1 / count, 0);
  return unary(UnaryOp::sqrt, affine(sample_sums(unary(UnaryOp::sqr, centred)), 1 / count, 0));
}

Tensor filled(int64_t count, double value, Device& device) {
  Tensor out = empty({count}, DType::f32, device);
  fill_(out, value);
  return out;
}

}  // namespace

Tensor RepeatedDenoiser::operator()(const Tensor& x, const Tensor& times, const Prompt& prompt,
                                    int64_t calls_left) {
  constexpr int64_t kWorthCapturing = 4;  // capture takes about as long as a step
  if (!capture_) {
    const bool captures = warm_ && calls_left >= kWorthCapturing;
    warm_ = true;
    if (!captures || !GraphCapture::supported(x.device())) {
      return denoiser_(x, times, prompt.conditioning, {.circular = circular_});
    }
    capture(x, times, prompt.conditioning);
  }
  if (changes_ && !fits(prompt.conditioning)) {
    return denoiser_(x, times, prompt.conditioning, {.circular = circular_});
  }
  if (changes_) follow(prompt);
  copy_(x_, x);
  copy_(times_, times);
  capture_.replay();
  return result_;
}

void RepeatedDenoiser::capture(const Tensor& x, const Tensor& times,
                               models::Conditioning& conditioning) {
  if (changes_) {
    own_ = conditioning.clone();
    for (Tensor* tensor : own_->tensors()) {
      if (tensor->defined()) *tensor = empty(tensor->shape(), tensor->dtype(), tensor->device());
    }
  }
  const models::Conditioning& read = changes_ ? *own_ : conditioning;
  x_ = empty(x.shape(), x.dtype(), x.device());
  times_ = empty(times.shape(), times.dtype(), times.device());
  capture_ = GraphCapture(x.device(),
                          [&] { result_ = denoiser_(x_, times_, read, {.circular = circular_}); });
}

bool RepeatedDenoiser::fits(models::Conditioning& conditioning) const {
  return std::ranges::equal(own_->tensors(), conditioning.tensors(),
                            [](const Tensor* own, const Tensor* other) {
                              return own->defined() == other->defined() &&
                                     (!own->defined() || own->shape() == other->shape());
                            });
}

void RepeatedDenoiser::follow(const Prompt& prompt) {
  if (followed_ == prompt.index) return;
  const std::vector<Tensor*> to = own_->tensors(), from = prompt.conditioning.tensors();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i]->defined()) copy_(*to[i], *from[i]);
  }
  followed_ = prompt.index;
}

Guide::Guide(const models::Denoiser& denoiser, const diffusion::NoiseModel& noise,
             PromptStates states, const PassPrompts& prompts, int64_t batch,
             const GuideOptions& options)
    : noise_(noise),
      options_(options),
      states_(std::move(states)),
      prompts_(prompts),
      batch_(batch),
      guided_(options.scale > 1 || options.unguided || prompts.composed()),
      denoiser_(denoiser),
      prepared_(prompts.calls.size()),
      repeated_(denoiser, prompts.calls.size() > 1, options.circular) {}

Guide::Prepared Guide::prepare(const CallTexts& texts) const {
  std::vector<models::TextStates> rows;
  if (guided_) rows.push_back(repeated(states_.negative[texts.negative], batch_));
  for (const size_t text : texts.positive) {
    rows.push_back(repeated(states_.positive[text], batch_));
  }
  const models::TextStates text = joined(rows);
  return {denoiser_.prepare(text), ControlPass(options_.controls, text, options_.circular)};
}

Guide::Prepared& Guide::prepared(size_t index) {
  constexpr size_t kMost = 4;
  // Keys and values of texts that do not come again are let go, and those that came first of more
  // than a few.
  for (size_t i = 0; i < prepared_.size(); ++i) {
    const bool again = std::ranges::any_of(prompts_.turns, [&](const PassPrompts::Turn& turn) {
      return turn.index == i && turn.last >= call_;
    });
    if (!again && i != index) {
      prepared_[i].reset();
      std::erase(kept_, i);
    }
  }
  if (!prepared_[index]) {
    if (kept_.size() >= kMost) {
      prepared_[kept_.front()].reset();
      kept_.pop_front();
    }
    prepared_[index] = prepare(prompts_.calls[index]);
    kept_.push_back(index);
  }
  return *prepared_[index];
}

Tensor Guide::prompted(const Tensor& output, const Tensor& negative) const {
  const auto part = [&](size_t i) {
    return output.slice(Axis{0}, static_cast<int64_t>(i + 1) * batch_, batch_);
  };
  if (!prompts_.composed()) return part(0);
  double rest = 1;
  for (const float weight : prompts_.weights) rest -= double{weight};
  Tensor out = affine(negative, rest, 0);
  for (size_t i = 0; i < prompts_.weights.size(); ++i) {
    out = out + affine(part(i), double{prompts_.weights[i]}, 0);
  }
  return out;
}

diffusion::Evaluation Guide::evaluate(const Tensor& x, double sigma, double time, bool unguided,
                                      StepPlace place) {
  if (options_.by_steps) call_ = place.index;
  const size_t index = prompts_.at(call_);
  Prepared& prompt = prepared(index);
  ++call_;
  const diffusion::Scaling scaling = noise_.scaling(sigma);
  const size_t copies = guided_ ? 1 + prompts_.weights.size() : 1;
  const auto rows = [&](const Tensor& one) {
    return copies > 1 ? concat(std::vector<Tensor>(copies, one), Axis{0}) : one;
  };
  const Tensor scaled = affine(x, scaling.in, 0);
  const Tensor seen = rows(scaled);
  const Tensor times = filled(seen.dim(0), time, x.device());
  const std::optional<models::ControlStates> control = prompt.controls(seen, times, place);
  const Tensor input =
      options_.extra.defined() ? rows(concat({scaled, options_.extra}, Axis{3})) : seen;
  // A control's addition is computed anew for each step.
  const Tensor output =
      control ? denoiser_(input, times, *prompt.conditioning, {&*control, options_.circular})
              : repeated_(input, times, {*prompt.conditioning, index}, place.count - place.index);
  const auto picture = [&](const Tensor& predicted) {
    if (scaling.skip == 0) return affine(predicted, scaling.out, 0);
    return weighted_sum({{&x, scaling.skip}, {&predicted, scaling.out}});
  };
  if (!guided_) return {picture(output), {}};
  const Tensor negative = output.slice(Axis{0}, 0, batch_);
  const Tensor positive = prompted(output, negative);
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
