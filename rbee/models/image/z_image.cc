#include "rbee/models/image/z_image.h"

#include <algorithm>

#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/norm.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "Z-Image";
constexpr int64_t kPatch = 2;
constexpr int64_t kMultiple = 32;     // of tokens of a picture, and of a text
constexpr int64_t kSampleSize = 128;  // latents on a side; configs do not say it
constexpr int64_t kSinusoidWidth = 256;
constexpr int64_t kTimeInner = 1024;
constexpr float kOutNormEps = 1e-6f;
constexpr const char *kIn = "all_x_embedder.2-1", *kOut = "all_final_layer.2-1";

// Prompts whose texts have one number of tokens, one after another.
struct ZImagePrompt final : Conditioning {
  std::vector<Tensor> captions;  // (prompts, tokens, width) each, before the blocks of both
  int64_t batch = 0;

  std::unique_ptr<Conditioning> clone() const override {
    return std::make_unique<ZImagePrompt>(*this);
  }
  std::vector<Tensor*> tensors() override {
    std::vector<Tensor*> out;
    for (Tensor& each : captions) out.push_back(&each);
    return out;
  }
};

int64_t padded(int64_t tokens) {
  return (tokens + kMultiple - 1) / kMultiple * kMultiple;
}

// (batch, height, width, channels) as (batch, patches, 4 * channels), the channels of a pixel
// together
Tensor split_patches(const Tensor& x) {
  const auto [batch, height, width, channels] = x.dims<4>();
  const int64_t rows = height / kPatch, cols = width / kPatch;
  const Tensor split = x.reshape({batch * rows, kPatch, cols, kPatch, channels});
  return contiguous(split.permute({0, 2, 1, 3, 4}))
      .reshape({batch, rows * cols, kPatch * kPatch * channels});
}

Tensor join_patches(const Tensor& patches, int64_t height, int64_t width) {
  const int64_t batch = patches.dim(0), channels = patches.dim(2) / (kPatch * kPatch);
  const int64_t rows = height / kPatch, cols = width / kPatch;
  const Tensor split = patches.reshape({batch * rows, cols, kPatch, kPatch, channels});
  return contiguous(split.permute({0, 2, 1, 3, 4})).reshape({batch, height, width, channels});
}

// x: (batch, tokens, width) with `padding`, (1, 1, width), up to `tokens`
Tensor with_padding(const Tensor& x, const Tensor& padding, int64_t tokens) {
  const auto [batch, own, width] = x.dims<3>();
  if (own == tokens) return x;
  const std::vector<Tensor> more(static_cast<size_t>(tokens - own), padding);
  const Tensor one = concat(more, Axis{1});
  std::vector<Tensor> rows(static_cast<size_t>(batch), one);
  return concat({x, concat(rows, Axis{0})}, Axis{1});
}

// RMS norm of x by `weight`, times `factor`, (batch, width); undefined = 1.
Tensor scaled_norm(const Tensor& x, const Tensor& weight, const Tensor& factor, float eps) {
  if (!factor.defined()) return rms_norm(x, weight, eps);
  // One sample's factor is a part of the norm's weight.
  if (x.dim(0) == 1) return rms_norm(x, weight * factor.reshape(weight.shape()), eps);
  return rms_norm(x, weight, eps) * factor.unsqueeze(Axis{1});
}

// Part `index` of a block's modulation.
Tensor modulation_part(const Tensor& modulation, int64_t index) {
  if (!modulation.defined()) return {};
  const int64_t width = modulation.dim(1) / 4;
  return contiguous(modulation.slice(Axis{1}, index * width, width));
}

Tensor scale_of(const Tensor& modulation, int64_t index) {
  const Tensor part = modulation_part(modulation, index);
  return part.defined() ? affine(part, 1, 1) : part;
}

Tensor gate_of(const Tensor& modulation, int64_t index) {
  const Tensor part = modulation_part(modulation, index);
  return part.defined() ? unary(UnaryOp::tanh, part) : part;
}

void check_patches(const io::JsonConfig& config) {
  for (const auto& [field, wanted] :
       {std::pair{"all_patch_size", kPatch}, {"all_f_patch_size", 1}}) {
    if (!config.has(field)) continue;
    const std::vector<int64_t> sizes = config.integers(field);
    if (sizes != std::vector<int64_t>{wanted}) {
      fail(Code::unsupported, config.describe(field), "patches of another size than ", wanted,
           " alone are not implemented");
    }
  }
}

}  // namespace

ZImageConfig ZImageConfig::read(const io::JsonConfig& config) {
  check_patches(config);
  if (config.has("siglip_feat_dim") && !config.is_null("siglip_feat_dim")) {
    fail(Code::unsupported, config.describe("siglip_feat_dim"),
         "models that read pictures besides are not implemented");
  }
  ZImageConfig out;
  out.channels = config.integer_or("in_channels", 16);
  out.width = config.integer_or("dim", 3840);
  out.layers = config.integer_or("n_layers", 30, {0, 1024});
  out.refiner_layers = config.integer_or("n_refiner_layers", 2, {0, 1024});
  out.heads = config.integer_or("n_heads", 30);
  out.context_width = config.integer_or("cap_feat_dim", 2560);
  out.norm_eps = static_cast<float>(config.number_or("norm_eps", 1e-5, io::kZeroToOne));
  out.query_norms = config.flag_or("qk_norm", true);
  out.time_scale = config.number_or("t_scale", 1000, {.lowest = 1e-3, .highest = 1e6});
  out.theta = config.number_or("rope_theta", 256, {.lowest = 1, .highest = 1e9});
  if (config.has("axes_dims")) {
    const auto axes = config.integers("axes_dims", {2, 1 << 12});
    check(axes.size() == out.axes.size(), config.describe("axes_dims"), "it lists ", axes.size(),
          " axes, wanted 3");
    std::ranges::copy(axes, out.axes.begin());
  }
  const int64_t turned = out.axes[0] + out.axes[1] + out.axes[2];
  check(turned * out.heads == out.width, config.describe("axes_dims"), "they are ", turned,
        " together, ", out.heads, " heads of a width of ", out.width, " are others");
  for (const int64_t axis : out.axes) {
    check(axis % 2 == 0, config.describe("axes_dims"), axis, " is odd");
  }
  return out;
}

ZImageBlock::ZImageBlock(const nn::WeightScope& scope, const ZImageConfig& config, bool modulated)
    : eps_(config.norm_eps) {
  const int64_t width = config.width, inner = config.ffn_width();
  attention_in_ = (scope / "attention_norm1").vector("weight", width);
  attention_out_ = (scope / "attention_norm2").vector("weight", width);
  mlp_in_ = (scope / "ffn_norm1").vector("weight", width);
  mlp_out_ = (scope / "ffn_norm2").vector("weight", width);
  constexpr float kHeadNormEps = 1e-5f;
  heads_ = StreamProjections(scope / "attention", {.width = width,
                                                   .heads = config.heads,
                                                   .norms = config.query_norms,
                                                   .norm_eps = kHeadNormEps,
                                                   .bias = nn::Bias::none});
  out_ = nn::Linear(scope / "attention.to_out.0", {.in = width, .out = width});
  gate_ = nn::Linear(scope / "feed_forward.w1", {.in = width, .out = inner});
  up_ = nn::Linear(scope / "feed_forward.w3", {.in = width, .out = inner});
  down_ = nn::Linear(scope / "feed_forward.w2", {.in = inner, .out = width});
  if (!modulated) return;
  modulation_ =
      nn::Linear(scope / "adaLN_modulation.0",
                 {.in = config.time_width(), .out = 4 * width, .bias = nn::Bias::required});
}

Tensor ZImageBlock::attend(const Tensor& x, const Tensor& scale,
                           const StreamRotation& rotation) const {
  const std::array streams{heads_(scaled_norm(x, attention_in_, scale, eps_))};
  return out_.over_last(stream_attention(streams, &rotation));
}

Tensor ZImageBlock::multiply(const Tensor& x, const Tensor& scale) const {
  const auto [batch, tokens, width] = x.dims<3>();
  const Tensor rows = scaled_norm(x, mlp_in_, scale, eps_).reshape({batch * tokens, width});
  return down_(gated_linear(GateOp::silu, {rows, {}, 0}, gate_.weights(), up_.weights()))
      .reshape(x.shape());
}

Tensor ZImageBlock::operator()(const Tensor& x, const Tensor& modulation,
                               const StreamRotation& rotation) const {
  const Tensor attended = attend(x, scale_of(modulation, 0), rotation);
  const Tensor h = x + scaled_norm(attended, attention_out_, gate_of(modulation, 1), eps_);
  const Tensor made = multiply(h, scale_of(modulation, 2));
  return h + scaled_norm(made, mlp_out_, gate_of(modulation, 3), eps_);
}

ZImage::ZImage(const nn::WeightScope& scope, const ZImageConfig& config)
    : info_{.in_channels = config.channels,
            .out_channels = config.channels,
            .context_width = config.context_width,
            .patch = kPatch,
            .sample_size = kSampleSize},
      activations_(scope.activations()),
      time_scale_(config.time_scale),
      eps_(config.norm_eps),
      places_(config.axes, config.theta, scope.device()),
      frequencies_(embedding_frequencies(kSinusoidWidth, 0, scope.device())) {
  using nn::Bias;
  const int64_t width = config.width, pixels = config.channels * kPatch * kPatch;
  const int64_t time = config.time_width();
  time_in_ = nn::Linear(scope / "t_embedder.mlp.0",
                        {.in = kSinusoidWidth, .out = kTimeInner, .bias = Bias::required});
  time_out_ = nn::Linear(scope / "t_embedder.mlp.2",
                         {.in = kTimeInner, .out = time, .bias = Bias::required});
  in_ = nn::Linear(scope / kIn, {.in = pixels, .out = width, .bias = Bias::required});
  context_norm_ = (scope / "cap_embedder.0").vector("weight", config.context_width);
  context_ = nn::Linear(scope / "cap_embedder.1",
                        {.in = config.context_width, .out = width, .bias = Bias::required});
  picture_padding_ = scope.array("x_pad_token", {1, width}).reshape({1, 1, width});
  padding_ = scope.array("cap_pad_token", {1, width}).reshape({1, 1, width});
  const auto add = [&](const char* name, int64_t count, bool modulated, auto& blocks) {
    for (int64_t i = 0; i < count; ++i)
      blocks.emplace_back(scope / name / cat(i), config, modulated);
  };
  add("noise_refiner", config.refiner_layers, true, picture_blocks_);
  add("context_refiner", config.refiner_layers, false, text_blocks_);
  add("layers", config.layers, true, blocks_);
  const nn::WeightScope end = scope / kOut;
  out_scale_ =
      nn::Linear(end / "adaLN_modulation.1", {.in = time, .out = width, .bias = Bias::required});
  out_ = nn::Linear(end / "linear", {.in = width, .out = pixels, .bias = Bias::required});
}

std::unique_ptr<Conditioning> ZImage::prepare(const TextStates& text) const {
  const Tensor& context = text.context;
  check(context.defined() && context.rank() == 3 && context.dim(2) == info_.context_width, kOp,
        "the prompt's states are no (batch, tokens, ", info_.context_width, ")");
  const auto [batch, most, states] = context.dims<3>();
  check(text.tokens.empty() || std::ssize(text.tokens) == batch, kOp, text.tokens.size(),
        " numbers of tokens are given for ", batch, " prompts");
  const Tensor all = context_.over_last(rms_norm(cast(context, activations_), context_norm_, eps_));
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t own = text.tokens.empty() ? most : text.tokens[static_cast<size_t>(i)];
    check(own > 0 && own <= most, kOp, "a prompt has ", own, " tokens of ", most);
    const Tensor row = all.slice(Axis{0}, i, 1).slice(Axis{1}, 0, own);
    rows.push_back(with_padding(row, padding_, padded(own)));
  }
  auto prompt = std::make_unique<ZImagePrompt>();
  prompt->batch = batch;
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const int64_t tokens = rows[first].dim(1);
    while (end < rows.size() && rows[end].dim(1) == tokens) ++end;
    const std::vector<Tensor> alike(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                    rows.begin() + static_cast<std::ptrdiff_t>(end));
    Tensor captions = concat(alike, Axis{0});
    const StreamRotation turned = rotation(tokens, 0, 0);
    for (const ZImageBlock& block : text_blocks_) captions = block(captions, {}, turned);
    prompt->captions.push_back(std::move(captions));
  }
  return prompt;
}

StreamRotation ZImage::rotation(int64_t tokens, int64_t rows, int64_t cols) const {
  return places_({tokens, rows, cols}, [&] {
    std::vector<StreamPlaces::Place> out;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) out.push_back({tokens + 1, row, col});
    }
    out.resize(static_cast<size_t>(padded(rows * cols)));
    for (int64_t i = 0; i < tokens; ++i) out.push_back({1 + i, 0, 0});
    return out;
  });
}

Tensor ZImage::embed_time(const Tensor& timesteps) const {
  constexpr double kTrainSteps = 1000;
  const Tensor times = affine(timesteps, -time_scale_ / kTrainSteps, time_scale_);
  const Tensor waves = sinusoids(times, frequencies_, SinusoidOrder::cos_first);
  return time_out_(unary(UnaryOp::silu, time_in_(cast(waves, activations_))));
}

Tensor ZImage::denoise(const Tensor& x, const Tensor& timesteps, const Tensor& captions) const {
  const Tensor time = embed_time(timesteps);
  std::vector<const LinearWeights*> layers;
  for (const ZImageBlock& block : picture_blocks_) layers.push_back(&block.modulation());
  for (const ZImageBlock& block : blocks_) layers.push_back(&block.modulation());
  const std::vector<Tensor> modulations = linear_many(time, layers);
  auto modulation = modulations.begin();
  const Tensor patches = in_.over_last(split_patches(cast(x, activations_)));
  const int64_t pixels = patches.dim(1), wide = padded(pixels);
  const StreamRotation both = rotation(captions.dim(1), x.dim(1) / kPatch, x.dim(2) / kPatch);
  const StreamRotation alone{both.cos.slice(Axis{0}, 0, wide), both.sin.slice(Axis{0}, 0, wide)};
  Tensor h = with_padding(patches, picture_padding_, wide);
  for (const ZImageBlock& block : picture_blocks_) h = block(h, *modulation++, alone);
  h = concat({h, captions}, Axis{1});
  for (const ZImageBlock& block : blocks_) h = block(h, *modulation++, both);
  const Tensor end = contiguous(h.slice(Axis{1}, 0, pixels));
  const Tensor scale = affine(out_scale_(unary(UnaryOp::silu, time)), 1, 1);
  const Tensor normed = layer_norm(end, {}, {}, kOutNormEps) * scale.unsqueeze(Axis{1});
  return join_patches(out_.over_last(normed), x.dim(1), x.dim(2));
}

// The network predicts the picture minus the noise, a flow is the opposite.
Tensor ZImage::operator()(const Tensor& x, const Tensor& timesteps,
                          const Conditioning& conditioning, const DenoiserOptions& options) const {
  const auto* prompt = dynamic_cast<const ZImagePrompt*>(&conditioning);
  check(prompt != nullptr, kOp, "the conditioning is of another denoiser");
  check_stream_input(kOp, info_, x, timesteps, prompt->batch);
  check(options.control == nullptr, kOp, "a control is for UNets");
  check(!options.circular.any(), kOp, "circular padding is for UNets");
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const Tensor& captions : prompt->captions) {
    const int64_t count = captions.dim(0);
    parts.push_back(
        denoise(x.slice(Axis{0}, first, count), timesteps.slice(Axis{0}, first, count), captions));
    first += count;
  }
  const Tensor all = parts.size() == 1 ? parts.front() : concat(parts, Axis{0});
  return affine(cast(all, DType::f32), -1, 0);
}

}  // namespace rbee::models
