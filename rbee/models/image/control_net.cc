#include "rbee/models/image/control_net.h"

#include "rbee/models/image/control_file.h"
#include "rbee/models/image/layers.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "ControlNet";
constexpr int64_t kColours = 3;

UnetConfig read_config(const io::JsonConfig& config, int64_t pooled_width) {
  const std::string order = config.text_or("controlnet_conditioning_channel_order", "rgb");
  if (order != "rgb") {
    fail(Code::unsupported, config.describe("controlnet_conditioning_channel_order"), "\"", order,
         "\" is not implemented");
  }
  if (config.flag_or("global_pool_conditions", false)) {
    fail(Code::unsupported, config.describe("global_pool_conditions"), "true is not implemented");
  }
  config.integer_or("conditioning_channels", kColours, {kColours, kColours});
  UnetConfig out = UnetConfig::read(config, UnetPaths::down);
  out.pooled_width = pooled_width;
  return out;
}

bool takes_control(ImageFamily family) {
  return family == ImageFamily::sd1 || family == ImageFamily::sd2 || family == ImageFamily::sdxl;
}

// By the width of the prompts' states, which differs between families that take ControlNets.
void check_family(const ModelPart& part, const ImageModel& model) {
  const int64_t width = UnetConfig::read(part.config, UnetPaths::down).down.front().context_width;
  int64_t wanted = 0;
  for (const TextPart& text : model.text) wanted += text.encoder->width();
  check(width == wanted, part.config.source(), "cross_attention_dim is ", width,
        ", the model's text encoders give ", wanted, ": this ControlNet is for another family");
}

}  // namespace

ControlNet::ControlNet(const nn::WeightScope& scope, const io::JsonConfig& config,
                       int64_t pooled_width)
    : trunk_(scope, read_config(config, pooled_width)) {
  auto channels = config.integers("conditioning_embedding_out_channels", {1, 1 << 16});
  if (channels.empty()) channels = {16, 32, 96, 256};
  const nn::WeightScope hint = scope / "controlnet_cond_embedding";
  hint_in_ = nn::Conv2d(hint / "conv_in", {.in = kColours, .out = channels.front()});
  for (size_t i = 0; i + 1 < channels.size(); ++i) {
    const nn::WeightScope blocks = hint / "blocks";
    hint_blocks_.emplace_back(blocks / cat(2 * i),
                              nn::Conv2dShape{.in = channels[i], .out = channels[i]});
    hint_blocks_.emplace_back(blocks / cat(2 * i + 1),
                              nn::Conv2dShape{.in = channels[i], .out = channels[i + 1]});
  }
  hint_out_ =
      nn::Conv2d(hint / "conv_out", {.in = channels.back(), .out = trunk_.skip_channels(0)});
  const auto pixel = [](int64_t width) {
    return nn::Conv2dShape{.in = width, .out = width, .kernel = 1};
  };
  for (size_t i = 0; i < trunk_.skips(); ++i) {
    skips_.emplace_back(scope / "controlnet_down_blocks" / cat(i), pixel(trunk_.skip_channels(i)));
  }
  middle_ =
      nn::Conv2d(scope / "controlnet_mid_block", pixel(trunk_.skip_channels(skips_.size() - 1)));
}

std::unique_ptr<Conditioning> ControlNet::prepare(const TextStates& text) const {
  return trunk_.prepare(text);
}

Tensor ControlNet::read_hint(const ControlCall& call) const {
  const ImageConvOptions whole = padded(1, call.circular);
  ImageConvOptions halved = whole;
  halved.stride = 2;
  Tensor h = unary(UnaryOp::silu, hint_in_(cast(call.hint, trunk_.activations()), whole));
  for (size_t i = 0; i < hint_blocks_.size(); ++i) {
    h = unary(UnaryOp::silu, hint_blocks_[i](h, i % 2 == 0 ? whole : halved));
  }
  return hint_out_(h, whole);
}

ControlStates ControlNet::operator()(const ControlCall& call,
                                     const Conditioning& conditioning) const {
  const UnetPrompt& prompt = trunk_.check_call(call.x, call.timesteps, conditioning);
  const int64_t factor = int64_t{1} << (hint_blocks_.size() / 2);
  const Shape wanted{call.x.dim(0), call.x.dim(1) * factor, call.x.dim(2) * factor, kColours};
  check(call.hint.defined() && call.hint.shape() == wanted, kOp, "the hint is ", call.hint,
        ", wanted (", wanted, ")");
  UnetPass pass = trunk_.start(call.timesteps, prompt, call.circular);
  const Tensor entered = trunk_.enter(call.x, pass) + read_hint(call);
  const std::vector<Tensor> skips = trunk_.go_down(entered, pass);
  ControlStates out;
  for (size_t i = 0; i < skips.size(); ++i) {
    out.skips.push_back(affine(skips_[i](skips[i]), call.scale, 0));
  }
  out.middle = affine(middle_(trunk_.middle(skips.back(), pass)), call.scale, 0);
  return out;
}

std::unique_ptr<ControlNet> load_control_net(const std::filesystem::path& path,
                                             const ImageModel& model) {
  if (!std::filesystem::exists(path)) {
    fail(Code::not_found, path.string(), "there is no such file or folder");
  }
  if (model.text.empty() || !takes_control(model.family)) {
    fail(Code::unsupported, path.string(), "ControlNets are for Stable Diffusion 1, 2 and XL, not ",
         name(model.family));
  }
  const ModelPart part = std::filesystem::is_directory(path)
                             ? read_part_folder(path, "ControlNetModel")
                             : read_control_file(path);
  if (part.class_name != "ControlNetModel") {
    fail(Code::unsupported, part.config.source(), "the part is a ", part.class_name,
         ", wanted a ControlNetModel");
  }
  check_family(part, model);
  const nn::WeightScope scope(part.weights,
                              {.device = model.device,
                               .own_names = true,
                               .plain_fp8 = true,
                               .widen_fp8 = model.device->host_accessible(),
                               .narrow_matrices = model.device->host_accessible(),
                               .may_quantize = model.int8 ? &multiplies_int8 : nullptr,
                               .activations = model.activations});
  auto net =
      std::make_unique<ControlNet>(scope, part.config, model.text.back().encoder->pooled_width());
  scope.finish();
  return net;
}

}  // namespace rbee::models
