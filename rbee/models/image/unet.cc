#include "rbee/models/image/unet.h"

#include "rbee/ops/concat.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "UNet";

void add_control(const ControlStates& control, std::vector<Tensor>& skips, Tensor& middle) {
  check(control.skips.size() == skips.size(), kOp, "the control has ", control.skips.size(),
        " states for ", skips.size(), " skips");
  for (size_t i = 0; i < skips.size(); ++i) {
    skips[i] = skips[i] + cast(control.skips[i], skips[i].dtype());
  }
  middle = middle + cast(control.middle, middle.dtype());
}

}  // namespace

Unet::Unet(const nn::WeightScope& scope, const UnetConfig& config) : trunk_(scope, config) {
  load_up(scope);
  const int64_t first = config.down.front().channels;
  out_norm_ = nn::GroupNorm(scope / "conv_norm_out", {.channels = first,
                                                      .groups = config.groups,
                                                      .eps = config.eps,
                                                      .activation = NormActivation::silu});
  out_ = nn::Conv2d(scope / "conv_out", {.in = first, .out = config.out_channels});
}

// Each resnet reads the result before it beside one skip, in the reverse order of
// the way down.
void Unet::load_up(const nn::WeightScope& scope) {
  const UnetConfig& config = trunk_.config();
  size_t skip = trunk_.skips();
  int64_t channels = config.up.front().channels;
  for (size_t i = 0; i < config.up.size(); ++i) {
    const UnetLevel& level = config.up[i];
    const nn::WeightScope block = scope / "up_blocks" / cat(i);
    UnetLayers::Widths widths{{}, level.channels};
    for (size_t j = 0; j < level.depths.size(); ++j) {
      widths.in.push_back(channels + trunk_.skip_channels(--skip));
      channels = level.channels;
    }
    up_.emplace_back(block, level, widths, trunk_.common());
    if (i + 1 == config.up.size()) continue;
    upsamplers_.emplace_back(block / "upsamplers.0.conv",
                             nn::Conv2dShape{.in = channels, .out = channels});
  }
}

std::unique_ptr<Conditioning> Unet::prepare(const TextStates& text) const {
  std::unique_ptr<UnetPrompt> prompt = trunk_.prepare(text);
  const Tensor context = cast(text.context, trunk_.activations());
  for (const UnetLayers& layers : up_) layers.prepare(context, prompt->cross);
  return prompt;
}

Tensor Unet::go_up(Tensor h, std::vector<Tensor> skips, UnetPass& pass) const {
  for (size_t i = 0; i < up_.size(); ++i) {
    for (size_t j = 0; j < up_[i].size(); ++j) {
      h = up_[i](j, concat({h, skips.back()}, Axis{-1}), pass);
      skips.pop_back();
    }
    if (i == upsamplers_.size()) continue;
    h = upsample_conv(h, upsamplers_[i], skips.back().dim(1), skips.back().dim(2), pass.circular);
  }
  return h;
}

Tensor Unet::operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                        const DenoiserOptions& options) const {
  const UnetPrompt& prompt = trunk_.check_call(x, timesteps, conditioning);
  UnetPass pass = trunk_.start(timesteps, prompt, options.circular, up_);
  std::vector<Tensor> skips = trunk_.go_down(trunk_.enter(x, pass), pass);
  Tensor h = trunk_.middle(skips.back(), pass);
  if (options.control != nullptr) add_control(*options.control, skips, h);
  h = go_up(h, std::move(skips), pass);
  return cast(out_(out_norm_(h), pass.circular), DType::f32);
}

}  // namespace rbee::models
