#include "rbee/models/image/unet.h"

#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "UNet";

}  // namespace

struct Unet::Prompt final : Conditioning {
  std::vector<KeysValues> cross;  // in the order of the transformer blocks
  Tensor added;                   // (batch, time_width) of the pooled prompt and the sizes
  Tensor guidance;                // (batch, channels) added to the time step's sinusoids
  int64_t batch = 0;
};

Unet::Unet(const nn::WeightScope& scope, const UnetConfig& config)
    : config_(config), activations_(scope.activations()) {
  const UnetCommon common{
      .time_width = config.time_width(), .groups = config.groups, .eps = config.eps};
  const int64_t first = config.down.front().channels;
  in_ = nn::Conv2d(scope / "conv_in", {.in = config.in_channels, .out = first});
  load_vectors(scope);
  load_down(scope, common);
  middle_ = std::make_unique<UnetMiddle>(scope / "mid_block", config, common);
  load_up(scope, common);
  out_norm_ = nn::GroupNorm(scope / "conv_norm_out", {.channels = first,
                                                      .groups = config.groups,
                                                      .eps = config.eps,
                                                      .activation = NormActivation::silu});
  out_ = nn::Conv2d(scope / "conv_out", {.in = first, .out = config.out_channels});
  info_.in_channels = config.in_channels;
  info_.out_channels = config.out_channels;
  info_.context_width = config.down.front().context_width;
  info_.guidance = config.guidance_width > 0;
  info_.sample_size = config.sample_size;
}

void Unet::load_vectors(const nn::WeightScope& scope) {
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

void Unet::load_down(const nn::WeightScope& scope, const UnetCommon& common) {
  int64_t channels = config_.down.front().channels;
  for (size_t i = 0; i < config_.down.size(); ++i) {
    const UnetLevel& level = config_.down[i];
    const nn::WeightScope block = scope / "down_blocks" / cat(i);
    UnetLayers::Widths widths{std::vector<int64_t>(level.depths.size(), level.channels),
                              level.channels};
    widths.in.front() = channels;
    channels = level.channels;
    down_.emplace_back(block, level, widths, common);
    if (i + 1 == config_.down.size()) continue;
    downsamplers_.emplace_back(block / "downsamplers.0.conv",
                               nn::Conv2dShape{.in = channels, .out = channels});
  }
}

// Each resnet reads what came before it beside one skip; skips are taken in the reverse order of
// the way down, whose first is conv_in's.
void Unet::load_up(const nn::WeightScope& scope, const UnetCommon& common) {
  std::vector<int64_t> skips{config_.down.front().channels};
  for (size_t i = 0; i < config_.down.size(); ++i) {
    const UnetLevel& level = config_.down[i];
    skips.insert(skips.end(), level.depths.size() + (i + 1 < config_.down.size()), level.channels);
  }
  int64_t channels = config_.up.front().channels;
  for (size_t i = 0; i < config_.up.size(); ++i) {
    const UnetLevel& level = config_.up[i];
    const nn::WeightScope block = scope / "up_blocks" / cat(i);
    UnetLayers::Widths widths{{}, level.channels};
    for (size_t j = 0; j < level.depths.size(); ++j) {
      widths.in.push_back(channels + skips.back());
      skips.pop_back();
      channels = level.channels;
    }
    up_.emplace_back(block, level, widths, common);
    if (i + 1 == config_.up.size()) continue;
    upsamplers_.emplace_back(block / "upsamplers.0.conv",
                             nn::Conv2dShape{.in = channels, .out = channels});
  }
}

void Unet::check_text(const TextStates& text) const {
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

Tensor Unet::added_vector(const TextStates& text) const {
  const int64_t batch = text.context.dim(0);
  const Tensor numbers = text.size_ids.reshape({batch * info_.size_ids});
  const auto order = config_.sin_first ? SinusoidOrder::sin_first : SinusoidOrder::cos_first;
  const Tensor sizes = sinusoids(numbers, size_frequencies_, order)
                           .reshape({batch, info_.size_ids * config_.size_width});
  return added_(concat({text.pooled, sizes}, Axis{1}));
}

std::unique_ptr<Conditioning> Unet::prepare(const TextStates& text) const {
  check_text(text);
  auto prompt = std::make_unique<Prompt>();
  prompt->batch = text.context.dim(0);
  const Tensor context = cast(text.context, activations_);
  for (const UnetLayers& layers : down_) layers.prepare(context, prompt->cross);
  middle_->prepare(context, prompt->cross);
  for (const UnetLayers& layers : up_) layers.prepare(context, prompt->cross);
  if (added_.defined()) prompt->added = added_vector(text);
  if (info_.guidance) {
    constexpr double kGuidanceSteps = 1000;  // Meng et al. 2023: the scale is embedded like a step
    const Tensor scaled = affine(text.guidance, kGuidanceSteps, 0);
    prompt->guidance = guidance_(
        cast(sinusoids(scaled, guidance_frequencies_, SinusoidOrder::sin_first), activations_));
  }
  return prompt;
}

// silu of the vector that every resnet reads: (batch, time_width)
Tensor Unet::time_vector(const Tensor& timesteps, const Prompt& prompt) const {
  const auto order = config_.sin_first ? SinusoidOrder::sin_first : SinusoidOrder::cos_first;
  Tensor step = cast(sinusoids(timesteps, frequencies_, order), activations_);
  if (prompt.guidance.defined()) step = step + prompt.guidance;
  Tensor vector = time_(step);
  if (prompt.added.defined()) vector = vector + prompt.added;
  return unary(UnaryOp::silu, vector);
}

// The skips, the last of which is the smallest picture.
std::vector<Tensor> Unet::go_down(const Tensor& x, UnetPass& pass) const {
  std::vector<Tensor> skips{in_(x)};
  ImageConvOptions halved = padded(1);
  halved.stride = 2;
  for (size_t i = 0; i < down_.size(); ++i) {
    for (size_t j = 0; j < down_[i].size(); ++j) {
      skips.push_back(down_[i](j, skips.back(), pass));
    }
    if (i < downsamplers_.size()) skips.push_back(downsamplers_[i](skips.back(), halved));
  }
  return skips;
}

Tensor Unet::go_up(Tensor h, std::vector<Tensor> skips, UnetPass& pass) const {
  for (size_t i = 0; i < up_.size(); ++i) {
    for (size_t j = 0; j < up_[i].size(); ++j) {
      h = up_[i](j, concat({h, skips.back()}, Axis{-1}), pass);
      skips.pop_back();
    }
    if (i == upsamplers_.size()) continue;
    h = upsample_conv(h, upsamplers_[i], skips.back().dim(1), skips.back().dim(2));
  }
  return h;
}

namespace {

void add_control(const ControlStates& control, std::vector<Tensor>& skips, Tensor& middle) {
  check(control.skips.size() == skips.size(), kOp, "the control has ", control.skips.size(),
        " states for ", skips.size(), " skips");
  for (size_t i = 0; i < skips.size(); ++i) {
    skips[i] = skips[i] + cast(control.skips[i], skips[i].dtype());
  }
  middle = middle + cast(control.middle, middle.dtype());
}

}  // namespace

Tensor Unet::operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                        const ControlStates* control) const {
  const auto* prompt = dynamic_cast<const Prompt*>(&conditioning);
  check(prompt != nullptr, kOp, "the conditioning is of another model");
  check(x.rank() == 4 && x.dim(3) == info_.in_channels && x.dim(0) == prompt->batch, kOp, "x is ",
        x, ", wanted (", prompt->batch, ", height, width, ", info_.in_channels, ")");
  check(timesteps.shape() == Shape{prompt->batch}, kOp, "the time steps are ", timesteps,
        ", wanted (", prompt->batch, ")");
  UnetPass pass{time_vector(timesteps, *prompt), prompt->cross};
  std::vector<Tensor> skips = go_down(cast(x, activations_), pass);
  Tensor h = (*middle_)(skips.back(), pass);
  if (control != nullptr) add_control(*control, skips, h);
  h = go_up(h, std::move(skips), pass);
  return cast(out_(out_norm_(h)), DType::f32);
}

}  // namespace rbee::models
