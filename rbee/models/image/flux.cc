#include "rbee/models/image/flux.h"

#include <algorithm>

#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "FLUX";
constexpr int64_t kPatch = 2;
constexpr int64_t kMlpRatio = 4;
constexpr int64_t kSampleSize = 128;  // latents on a side; configs do not say it
constexpr double kTheta = 10000;

// (batch, height, width, channels) as (batch, patches, channels * 4), the pixels of a channel
// together
Tensor split_patches(const Tensor& x) {
  const auto [batch, height, width, channels] = x.dims<4>();
  const int64_t rows = height / kPatch, cols = width / kPatch;
  const Tensor split = x.reshape({batch * rows, kPatch, cols, kPatch, channels});
  return contiguous(split.permute({0, 2, 4, 1, 3}))
      .reshape({batch, rows * cols, channels * kPatch * kPatch});
}

Tensor join_patches(const Tensor& patches, int64_t height, int64_t width) {
  const int64_t batch = patches.dim(0), channels = patches.dim(2) / (kPatch * kPatch);
  const int64_t rows = height / kPatch, cols = width / kPatch;
  const Tensor split = patches.reshape({batch * rows, cols, channels, kPatch, kPatch});
  return contiguous(split.permute({0, 3, 1, 4, 2})).reshape({batch, height, width, channels});
}

}  // namespace

FluxConfig FluxConfig::read(const io::JsonConfig& config) {
  FluxConfig out;
  const int64_t in = config.integer_or("in_channels", 64);
  const int64_t made = config.integer_or("out_channels", in);
  constexpr int64_t kPixels = kPatch * kPatch;
  check(in % kPixels == 0 && made % kPixels == 0 && config.integer_or("patch_size", 1) == 1,
        config.describe("in_channels"), in, " are no patches of two by two");
  check(in == made || in >= 2 * made, config.describe("in_channels"), in, " channels for ", made,
        " that are made are neither a latent nor two");
  out.channels = made / kPixels;
  out.read_channels = in / kPixels;
  out.double_layers = config.integer_or("num_layers", 19, {0, 1024});
  out.single_layers = config.integer_or("num_single_layers", 38, {0, 1024});
  out.heads = config.integer_or("num_attention_heads", 24);
  out.head_dim = config.integer_or("attention_head_dim", 128);
  out.context_width = config.integer_or("joint_attention_dim", 4096);
  out.pooled_width = config.integer_or("pooled_projection_dim", 768);
  out.guidance = config.flag_or("guidance_embeds", false);
  if (config.has("axes_dims_rope")) {
    const auto axes = config.integers("axes_dims_rope", {2, 1 << 12});
    check(axes.size() == out.axes.size(), config.describe("axes_dims_rope"), "it lists ",
          axes.size(), " axes, wanted 3");
    std::ranges::copy(axes, out.axes.begin());
  }
  const int64_t turned = out.axes[0] + out.axes[1] + out.axes[2];
  check(turned == out.head_dim, config.describe("axes_dims_rope"), "they are ", turned,
        " together, a head has ", out.head_dim);
  for (const int64_t axis : out.axes) {
    check(axis % 2 == 0, config.describe("axes_dims_rope"), axis, " is odd");
  }
  return out;
}

FluxDoubleBlock::FluxDoubleBlock(const nn::WeightScope& scope, const FluxConfig& config) {
  const int64_t width = config.width(), inner = kMlpRatio * width;
  picture_norm_ = Modulation(scope / "norm1", width, 6);
  text_norm_ = Modulation(scope / "norm1_context", width, 6);
  const StreamHeadsSpec heads{.width = width, .heads = config.heads, .norms = true};
  const nn::LinearShape square{.in = width, .out = width, .bias = nn::Bias::required};
  picture_heads_ = StreamProjections(scope / "attn", heads);
  text_heads_ = StreamProjections(scope / "attn", text_heads(heads));
  picture_out_ = nn::Linear(scope / "attn.to_out.0", square);
  text_out_ = nn::Linear(scope / "attn.to_add_out", square);
  picture_mlp_ = StreamMlp(scope / "ff", width, inner);
  text_mlp_ = StreamMlp(scope / "ff_context", width, inner);
}

void FluxDoubleBlock::add_modulations(std::vector<const Modulation*>& modulations) const {
  modulations.push_back(&picture_norm_);
  modulations.push_back(&text_norm_);
}

void FluxDoubleBlock::operator()(Tensor& text, Tensor& picture,
                                 std::span<const std::vector<Tensor>>& modulations,
                                 const StreamRotation& rotation) const {
  const std::vector<Tensor>& of_picture = next_modulation(modulations);
  const std::vector<Tensor>& of_text = next_modulation(modulations);
  const std::array streams{text_heads_(modulated_norm(text, of_text[0], of_text[1])),
                           picture_heads_(modulated_norm(picture, of_picture[0], of_picture[1]))};
  const Tensor attended = stream_attention(streams, &rotation);
  const int64_t tokens = text.dim(1), pixels = picture.dim(1);
  const auto add = [](const Tensor& x, const std::vector<Tensor>& parts, const Tensor& y,
                      const StreamMlp& mlp) {
    const Tensor h = gated_sum(x, parts[2], y);
    return gated_sum(h, parts[5], mlp(modulated_norm(h, parts[3], parts[4])));
  };
  text = add(text, of_text, text_out_.over_last(attended.slice(Axis{1}, 0, tokens)), text_mlp_);
  picture = add(picture, of_picture,
                picture_out_.over_last(attended.slice(Axis{1}, tokens, pixels)), picture_mlp_);
}

FluxSingleBlock::FluxSingleBlock(const nn::WeightScope& scope, const FluxConfig& config) {
  const int64_t width = config.width(), inner = kMlpRatio * width;
  norm_ = Modulation(scope / "norm", width, 3);
  heads_ =
      StreamProjections(scope / "attn", {.width = width, .heads = config.heads, .norms = true});
  mlp_ = nn::Linear(scope / "proj_mlp", {.in = width, .out = inner, .bias = nn::Bias::required});
  out_ = nn::Linear(scope / "proj_out",
                    {.in = width + inner, .out = width, .bias = nn::Bias::required});
}

Tensor FluxSingleBlock::operator()(const Tensor& x, const std::vector<Tensor>& parts,
                                   const StreamRotation& rotation) const {
  const Tensor h = modulated_norm(x, parts[0], parts[1]);
  const std::array streams{heads_(h)};
  const Tensor attended = stream_attention(streams, &rotation);
  const Tensor inner = unary(UnaryOp::gelu, mlp_.over_last(h));
  return gated_sum(x, parts[2], out_.over_last(concat({attended, inner}, Axis{-1})));
}

StreamRotation Flux::rotation(int64_t text, int64_t rows, int64_t cols) const {
  return places_({text, rows, cols}, [&] {
    std::vector<StreamPlaces::Place> out(static_cast<size_t>(text));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) out.push_back({0, row, col});
    }
    return out;
  });
}

Flux::Flux(const nn::WeightScope& scope, const FluxConfig& config)
    : info_{.in_channels = config.read_channels,
            .out_channels = config.channels,
            .context_width = config.context_width,
            .pooled_width = config.pooled_width,
            .guidance = config.guidance,
            .patch = kPatch,
            .sample_size = kSampleSize},
      activations_(scope.activations()),
      places_(config.axes, kTheta, scope.device()) {
  const int64_t width = config.width(), patch = config.channels * kPatch * kPatch;
  in_ = nn::Linear(
      scope / "x_embedder",
      {.in = config.read_channels * kPatch * kPatch, .out = width, .bias = nn::Bias::required});
  context_ = nn::Linear(scope / "context_embedder",
                        {.in = config.context_width, .out = width, .bias = nn::Bias::required});
  vector_ = StreamVector(scope / "time_text_embed", config.pooled_width, width, config.guidance);
  for (int64_t i = 0; i < config.double_layers; ++i) {
    double_blocks_.emplace_back(scope / "transformer_blocks" / cat(i), config);
  }
  for (int64_t i = 0; i < config.single_layers; ++i) {
    single_blocks_.emplace_back(scope / "single_transformer_blocks" / cat(i), config);
  }
  out_norm_ = Modulation(scope / "norm_out", width, 2);
  out_ = nn::Linear(scope / "proj_out", {.in = width, .out = patch, .bias = nn::Bias::required});
}

std::unique_ptr<Conditioning> Flux::prepare(const TextStates& text) const {
  return prepare_stream(kOp, info_, text, context_, vector_, activations_);
}

Tensor Flux::operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                        const DenoiserOptions& options) const {
  const StreamPrompt& prompt = check_stream_call(kOp, info_, x, timesteps, conditioning);
  check(options.control == nullptr, kOp, "a control is for UNets");
  check(!options.circular.any(), kOp, "circular padding is for UNets");
  std::vector<const Modulation*> modulations;
  for (const FluxDoubleBlock& block : double_blocks_) block.add_modulations(modulations);
  for (const FluxSingleBlock& block : single_blocks_) modulations.push_back(&block.modulation());
  modulations.push_back(&out_norm_);
  const auto modulated = modulate(vector_(timesteps, prompt.vector), modulations);
  std::span<const std::vector<Tensor>> to_come = modulated;
  Tensor text = prompt.context;
  Tensor picture = in_.over_last(split_patches(cast(x, activations_)));
  const int64_t tokens = text.dim(1), pixels = picture.dim(1);
  const StreamRotation turned = rotation(tokens, x.dim(1) / kPatch, x.dim(2) / kPatch);
  for (const FluxDoubleBlock& block : double_blocks_) block(text, picture, to_come, turned);
  Tensor both = concat({text, picture}, Axis{1});
  for (const FluxSingleBlock& block : single_blocks_) {
    both = block(both, next_modulation(to_come), turned);
  }
  const Tensor end = contiguous(both.slice(Axis{1}, tokens, pixels));
  const std::vector<Tensor>& parts = next_modulation(to_come);
  const Tensor patches = out_.over_last(modulated_norm(end, parts[1], parts[0]));
  return cast(join_patches(patches, x.dim(1), x.dim(2)), DType::f32);
}

}  // namespace rbee::models
