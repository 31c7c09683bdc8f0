#include "rbee/models/image/unet_trunk.h"

#include "rbee/ops/concat.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "UNet";

}  // namespace

std::vector<Tensor*> UnetPrompt::tensors() {
  std::vector<Tensor*> out{&added, &guidance};
  for (KeysValues& each : cross) out.insert(out.end(), {&each.keys, &each.values});
  return out;
}

UnetTrunk::UnetTrunk(const nn::WeightScope& scope, const UnetConfig& config)
    : config_(config),
      common_{.time_width = config.time_width(), .groups = config.groups, .eps = config.eps},
      activations_(scope.activations()) {
  in_ = nn::Conv2d(scope / "conv_in",
                   {.in = config.in_channels, .out = config.down.front().channels});
  load_vectors(scope);
  load_down(scope);
  middle_ = std::make_unique<UnetMiddle>(scope / "mid_block", config, common_);
  info_.in_channels = config.in_channels;
  info_.out_channels = config.out_channels;
  info_.context_width = config.down.front().context_width;
  info_.guidance = config.guidance_width > 0;
  info_.sample_size = config.sample_size;
  info_.circular = true;
}

SinusoidOrder UnetTrunk::order() const {
  return config_.sin_first ? SinusoidOrder::sin_first : SinusoidOrder::cos_first;
}

void UnetTrunk::load_vectors(const nn::WeightScope& scope) {
  const int64_t first = config_.down.front().channels;
  Device& device = scope.device();
  frequencies_ = embedding_frequencies(first, config_.frequency_shift, device);
  const nn::WeightScope time = scope / "time_embedding";
  time_ = VectorMlp(time, first, config_.time_width());
  if (config_.guidance_width > 0) {
    guidance_ = nn::Linear(time / "cond_proj", {.in = config_.guidance_width, .out = first});
    guidance_frequencies_ = embedding_frequencies(config_.guidance_width, 1, device);
  }
  if (config_.size_width == 0) return;
  added_ = VectorMlp(scope / "add_embedding", config_.added_width, config_.time_width());
  size_frequencies_ = embedding_frequencies(config_.size_width, config_.frequency_shift, device);
  const int64_t sizes = config_.added_width - config_.pooled_width;
  check(config_.pooled_width > 0 && sizes > 0 && sizes % config_.size_width == 0, kOp,
        "projection_class_embeddings_input_dim is ", config_.added_width, ", of which ",
        config_.pooled_width, " are the prompt's: the rest is no multiple of ", config_.size_width,
        ", addition_time_embed_dim");
  info_.pooled_width = config_.pooled_width;
  info_.size_ids = sizes / config_.size_width;
}

void UnetTrunk::load_down(const nn::WeightScope& scope) {
  int64_t channels = config_.down.front().channels;
  for (size_t i = 0; i < config_.down.size(); ++i) {
    const UnetLevel& level = config_.down[i];
    const nn::WeightScope block = scope / "down_blocks" / cat(i);
    UnetLayers::Widths widths{std::vector<int64_t>(level.depths.size(), level.channels),
                              level.channels};
    widths.in.front() = channels;
    channels = level.channels;
    down_.emplace_back(block, level, widths, common_);
    if (i + 1 == config_.down.size()) continue;
    downsamplers_.emplace_back(block / "downsamplers.0.conv",
                               nn::Conv2dShape{.in = channels, .out = channels});
  }
}

// The channels of conv_in, then of each level's resnets and its halving.
int64_t UnetTrunk::skip_channels(size_t index) const {
  if (index == 0) return config_.down.front().channels;
  size_t end = 1;
  for (const UnetLevel& level : config_.down) {
    end += level.depths.size() + 1;
    if (index < end) return level.channels;
  }
  return config_.down.back().channels;
}

size_t UnetTrunk::skips() const {
  size_t count = 1 + downsamplers_.size();
  for (const UnetLayers& layers : down_) count += layers.size();
  return count;
}

void UnetTrunk::check_text(const TextStates& text) const {
  check(text.context.defined() && text.context.rank() == 3 &&
            text.context.dim(2) == info_.context_width,
        kOp, "the prompt's states are ", text.context, ", wanted (batch, tokens, ",
        info_.context_width, ")");
  const int64_t batch = text.context.dim(0);
  if (info_.pooled_width > 0) {
    check(text.pooled.defined() && text.pooled.shape() == Shape{batch, info_.pooled_width}, kOp,
          "the pooled prompt is ", text.pooled, ", wanted (", batch, ", ", info_.pooled_width, ")");
    check(text.size_ids.defined() && text.size_ids.shape() == Shape{batch, info_.size_ids}, kOp,
          "the sizes are ", text.size_ids, ", wanted (", batch, ", ", info_.size_ids, ")");
  }
  if (info_.guidance) {
    check(text.guidance.defined() && text.guidance.shape() == Shape{batch}, kOp, "the guidance is ",
          text.guidance, ", wanted (", batch, ")");
  }
}

Tensor UnetTrunk::added_vector(const TextStates& text) const {
  const int64_t batch = text.context.dim(0);
  const Tensor numbers = text.size_ids.reshape({batch * info_.size_ids});
  const Tensor sizes = sinusoids(numbers, size_frequencies_, order())
                           .reshape({batch, info_.size_ids * config_.size_width});
  return added_(concat({text.pooled, sizes}, Axis{1}));
}

std::unique_ptr<UnetPrompt> UnetTrunk::prepare(const TextStates& text) const {
  check_text(text);
  auto prompt = std::make_unique<UnetPrompt>();
  prompt->batch = text.context.dim(0);
  const Tensor context = cast(text.context, activations_);
  for (const UnetLayers& layers : down_) layers.prepare(context, prompt->cross);
  middle_->prepare(context, prompt->cross);
  if (added_.defined()) prompt->added = added_vector(text);
  if (info_.guidance) {
    constexpr double kGuidanceSteps = 1000;  // Meng et al. 2023: the scale is embedded like a step
    const Tensor scaled = affine(text.guidance, kGuidanceSteps, 0);
    prompt->guidance = guidance_(
        cast(sinusoids(scaled, guidance_frequencies_, SinusoidOrder::sin_first), activations_));
  }
  return prompt;
}

const UnetPrompt& UnetTrunk::check_call(const Tensor& x, const Tensor& timesteps,
                                        const Conditioning& conditioning) const {
  const auto* prompt = dynamic_cast<const UnetPrompt*>(&conditioning);
  check(prompt != nullptr, kOp, "the conditioning is of another model");
  check(x.rank() == 4 && x.dim(3) == info_.in_channels && x.dim(0) == prompt->batch, kOp, "x is ",
        x, ", wanted (", prompt->batch, ", height, width, ", info_.in_channels, ")");
  check(timesteps.shape() == Shape{prompt->batch}, kOp, "the time steps are ", timesteps,
        ", wanted (", prompt->batch, ")");
  return *prompt;
}

UnetPass UnetTrunk::start(const Tensor& timesteps, const UnetPrompt& prompt, Circular circular,
                          std::span<const UnetLayers> up) const {
  Tensor step = cast(sinusoids(timesteps, frequencies_, order()), activations_);
  if (prompt.guidance.defined()) step = step + prompt.guidance;
  Tensor vector = time_(step);
  if (prompt.added.defined()) vector = vector + prompt.added;
  std::vector<const LinearWeights*> layers;
  for (const UnetLayers& level : down_) level.add_time(layers);
  middle_->add_time(layers);
  for (const UnetLayers& level : up) level.add_time(layers);
  return {.time = linear_many(unary(UnaryOp::silu, vector), layers),
          .prompt = prompt.cross,
          .circular = circular};
}

std::vector<Tensor> UnetTrunk::go_down(const Tensor& entered, UnetPass& pass) const {
  std::vector<Tensor> skips{entered};
  ImageConvOptions halved = padded(1, pass.circular);
  halved.stride = 2;
  for (size_t i = 0; i < down_.size(); ++i) {
    for (size_t j = 0; j < down_[i].size(); ++j) {
      skips.push_back(down_[i](j, skips.back(), pass));
    }
    if (i < downsamplers_.size()) skips.push_back(downsamplers_[i](skips.back(), halved));
  }
  return skips;
}

}  // namespace rbee::models
