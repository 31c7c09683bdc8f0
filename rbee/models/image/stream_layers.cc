#include "rbee/models/image/stream_layers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/ops/attention.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/rope.h"

namespace rbee::models {
namespace {

constexpr int64_t kSinusoidWidth = 256;
constexpr double kGuidanceScale = 1000;

// (batch, width) as a factor of each token of a stream
Tensor for_tokens(const Tensor& x) {
  return x.unsqueeze(Axis{1});
}

}  // namespace

Modulation::Modulation(const nn::WeightScope& scope, int64_t width, int64_t parts)
    : parts_(parts),
      linear_(scope / "linear", {.in = width, .out = parts * width, .bias = nn::Bias::required}) {}

std::vector<Tensor> Modulation::split(const Tensor& all) const {
  const int64_t width = all.dim(1) / parts_;
  std::vector<Tensor> out;
  for (int64_t i = 0; i < parts_; ++i) out.push_back(all.slice(Axis{1}, i * width, width));
  return out;
}

std::vector<std::vector<Tensor>> modulate(const Tensor& vector,
                                          std::span<const Modulation* const> modulations) {
  std::vector<const LinearWeights*> layers;
  for (const Modulation* modulation : modulations) layers.push_back(&modulation->weights());
  const std::vector<Tensor> all = linear_many(vector, layers);
  std::vector<std::vector<Tensor>> out;
  for (size_t i = 0; i < all.size(); ++i) out.push_back(modulations[i]->split(all[i]));
  return out;
}

const std::vector<Tensor>& next_modulation(std::span<const std::vector<Tensor>>& modulations) {
  const std::vector<Tensor>& next = modulations.front();
  modulations = modulations.subspan(1);
  return next;
}

Tensor modulated_norm(const Tensor& x, const Tensor& shift, const Tensor& scale) {
  const Tensor factor = affine(scale, 1, 1);
  if (x.dim(0) == 1) {  // one sample's scale and shift are a norm's weight and bias
    const Shape width{x.dim(2)};
    return layer_norm(x, factor.reshape(width), contiguous(shift).reshape(width), kStreamNormEps);
  }
  return layer_norm(x, {}, {}, kStreamNormEps) * for_tokens(factor) + for_tokens(shift);
}

Tensor gated_sum(const Tensor& x, const Tensor& gate, const Tensor& y) {
  return x + y * for_tokens(gate);
}

StreamMlp::StreamMlp(const nn::WeightScope& scope, int64_t width, int64_t inner)
    : up_(scope / "net.0.proj", {.in = width, .out = inner, .bias = nn::Bias::required}),
      down_(scope / "net.2", {.in = inner, .out = width, .bias = nn::Bias::required}) {}

Tensor StreamMlp::operator()(const Tensor& x) const {
  return down_.over_last(unary(UnaryOp::gelu, up_.over_last(x)));
}

StreamProjections::StreamProjections(const nn::WeightScope& scope, const StreamHeadsSpec& spec)
    : heads_(spec.heads) {
  const nn::LinearShape square{.in = spec.width, .out = spec.width, .bias = spec.bias};
  query_ = nn::Linear(scope / spec.query, square);
  key_ = nn::Linear(scope / spec.key, square);
  value_ = nn::Linear(scope / spec.value, square);
  nn::adjoin(scope, {&query_, &key_, &value_});
  if (!spec.norms) return;
  const nn::NormOptions norm{.dim = spec.width / spec.heads, .eps = spec.norm_eps};
  query_norm_ = nn::RmsNorm(scope / spec.query_norm, norm);
  key_norm_ = nn::RmsNorm(scope / spec.key_norm, norm);
}

StreamHeads StreamProjections::operator()(const Tensor& x) const {
  const auto [batch, tokens, width] = x.dims<3>();
  const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
  const std::vector<Tensor> rows =
      linear_many(contiguous(x).reshape({batch * tokens, width}), layers);
  const auto heads = [&](const Tensor& y) { return split_rows(y, batch).split_last(heads_); };
  const auto normed = [&](const nn::RmsNorm& norm, const Tensor& y) {
    return norm.defined() ? norm(heads(y)) : heads(y);
  };
  return {normed(query_norm_, rows[0]), normed(key_norm_, rows[1]), heads(rows[2])};
}

StreamHeadsSpec text_heads(StreamHeadsSpec picture) {
  picture.query = "add_q_proj";
  picture.key = "add_k_proj";
  picture.value = "add_v_proj";
  picture.query_norm = "norm_added_q";
  picture.key_norm = "norm_added_k";
  return picture;
}

StreamRotation StreamPlaces::operator()(const Place& key,
                                        const std::function<std::vector<Place>()>& places) const {
  constexpr size_t kKept = 4;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, key, &std::pair<Place, StreamRotation>::first);
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().second;
  }
  if (kept_.size() >= kKept) kept_.erase(kept_.begin());
  return kept_.emplace_back(key, compute(places())).second;
}

StreamRotation StreamPlaces::compute(const std::vector<Place>& places) const {
  std::vector<std::pair<size_t, double>> turns;  // coordinate and frequency
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    for (int64_t i = 0; i < axes_[axis]; i += 2) {
      const double share = static_cast<double>(i) / static_cast<double>(axes_[axis]);
      turns.emplace_back(axis, std::pow(theta_, -share));
    }
  }
  std::vector<float> cosines, sines;
  for (const Place& place : places) {
    for (const auto& [axis, frequency] : turns) {
      const double angle = static_cast<double>(place[axis]) * frequency;
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const Shape shape{std::ssize(places), std::ssize(turns)};
  return {from_host<float>(cosines, shape, *device_), from_host<float>(sines, shape, *device_)};
}

Tensor stream_attention(std::span<const StreamHeads> streams, const StreamRotation* rotation) {
  const auto all = [&](Tensor StreamHeads::* part) {
    std::vector<Tensor> parts;
    for (const StreamHeads& stream : streams) parts.push_back(stream.*part);
    const Tensor joined = parts.size() == 1 ? parts.front() : concat(parts, Axis{1});
    return joined.permute({0, 2, 1, 3});
  };
  Tensor query = all(&StreamHeads::query), key = all(&StreamHeads::key);
  if (rotation != nullptr) {
    query = rope_interleaved(query, rotation->cos, rotation->sin);
    key = rope_interleaved(key, rotation->cos, rotation->sin);
  }
  return join_heads(attention(query, key, all(&StreamHeads::value), {}));
}

StreamVector::StreamVector(const nn::WeightScope& scope, int64_t pooled_width, int64_t width,
                           bool guidance)
    : frequencies_(embedding_frequencies(kSinusoidWidth, 0, scope.device())),
      time_(scope / "timestep_embedder", kSinusoidWidth, width),
      text_(scope / "text_embedder", pooled_width, width) {
  if (guidance) guidance_ = VectorMlp(scope / "guidance_embedder", kSinusoidWidth, width);
}

Tensor StreamVector::embed(const VectorMlp& mlp, const Tensor& values) const {
  return mlp(sinusoids(values, frequencies_, SinusoidOrder::cos_first));
}

Tensor StreamVector::prepare(const TextStates& text) const {
  const Tensor out = text_(text.pooled);
  if (!guidance_.defined()) return out;
  return out + embed(guidance_, affine(text.guidance, kGuidanceScale, 0));
}

Tensor StreamVector::operator()(const Tensor& timesteps, const Tensor& prepared) const {
  return unary(UnaryOp::silu, embed(time_, timesteps) + prepared);
}

std::unique_ptr<Conditioning> prepare_stream(const char* op, const DenoiserInfo& info,
                                             const TextStates& text, const nn::Linear& context,
                                             const StreamVector& vector, DType activations) {
  check(text.context.defined() && text.context.rank() == 3 &&
            text.context.dim(2) == info.context_width,
        op, "the prompt's states are no (batch, tokens, ", info.context_width, ")");
  const int64_t batch = text.context.dim(0);
  check(text.pooled.defined() && text.pooled.shape() == Shape{batch, info.pooled_width}, op,
        "the pooled prompt is no (", batch, ", ", info.pooled_width, ")");
  check(!info.guidance || (text.guidance.defined() && text.guidance.shape() == Shape{batch}), op,
        "the guidance is no (", batch, ")");
  auto prompt = std::make_unique<StreamPrompt>();
  prompt->batch = batch;
  prompt->context = context.over_last(cast(text.context, activations));
  prompt->vector = vector.prepare(text);
  return prompt;
}

void check_stream_input(const char* op, const DenoiserInfo& info, const Tensor& x,
                        const Tensor& timesteps, int64_t batch) {
  check(x.rank() == 4 && x.dim(0) == batch && x.dim(3) == info.in_channels, op, "x is ", x,
        ", wanted (", batch, ", height, width, ", info.in_channels, ")");
  check(x.dim(1) % info.patch == 0 && x.dim(2) % info.patch == 0, op, "x is ", x,
        ", whose height and width have to be multiples of ", info.patch);
  check(timesteps.shape() == Shape{batch}, op, "the time steps are ", timesteps, ", wanted (",
        batch, ")");
}

const StreamPrompt& check_stream_call(const char* op, const DenoiserInfo& info, const Tensor& x,
                                      const Tensor& timesteps, const Conditioning& conditioning) {
  const auto* prompt = dynamic_cast<const StreamPrompt*>(&conditioning);
  check(prompt != nullptr, op, "the conditioning is of another denoiser");
  check_stream_input(op, info, x, timesteps, prompt->batch);
  return *prompt;
}

}  // namespace rbee::models
