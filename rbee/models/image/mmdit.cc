#include "rbee/models/image/mmdit.h"

#include <algorithm>
#include <array>

#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "MMDiT";

bool read_query_norms(const io::JsonConfig& config) {
  const std::string name = config.text_or("qk_norm", "");
  if (name.empty() || name == "rms_norm") return !name.empty();
  fail(Code::unsupported, config.describe("qk_norm"), "\"", name,
       "\" is not implemented; known is rms_norm");
}

}  // namespace

MmditConfig MmditConfig::read(const io::JsonConfig& config) {
  MmditConfig out;
  out.sample_size = config.integer_or("sample_size", 128);
  out.patch = config.integer_or("patch_size", 2, {1, 16});
  out.in_channels = config.integer_or("in_channels", 16);
  out.out_channels = config.integer_or("out_channels", out.in_channels);
  out.layers = config.integer_or("num_layers", 18, {1, 1024});
  out.heads = config.integer_or("num_attention_heads", 18);
  out.head_dim = config.integer_or("attention_head_dim", 64);
  out.context_width = config.integer_or("joint_attention_dim", 4096);
  out.pooled_width = config.integer_or("pooled_projection_dim", 2048);
  out.max_patches = config.integer_or("pos_embed_max_size", 96);
  const int64_t projected = config.integer_or("caption_projection_dim", 1152);
  check(projected == out.width(), config.describe("caption_projection_dim"), "is ", projected,
        ", wanted the ", out.width(), " of the heads together");
  if (config.has("dual_attention_layers")) {
    out.dual_layers = config.integers("dual_attention_layers", {0, out.layers - 1});
  }
  out.query_norms = read_query_norms(config);
  return out;
}

MmditBlock::MmditBlock(const nn::WeightScope& scope, const MmditConfig& config, int64_t index)
    : last_(index + 1 == config.layers),
      dual_(std::ranges::find(config.dual_layers, index) != config.dual_layers.end()) {
  const int64_t width = config.width(), inner = 4 * width;
  picture_norm_ = Modulation(scope / "norm1", width, dual_ ? 9 : 6);
  text_norm_ = Modulation(scope / "norm1_context", width, last_ ? 2 : 6);
  const StreamHeadsSpec heads{.width = width, .heads = config.heads, .norms = config.query_norms};
  const nn::LinearShape square{.in = width, .out = width, .bias = nn::Bias::required};
  const nn::WeightScope attention = scope / "attn";
  picture_heads_ = StreamProjections(attention, heads);
  text_heads_ = StreamProjections(attention, text_heads(heads));
  picture_out_ = nn::Linear(attention / "to_out.0", square);
  picture_mlp_ = StreamMlp(scope / "ff", width, inner);
  if (dual_) {
    own_heads_ = StreamProjections(scope / "attn2", heads);
    own_out_ = nn::Linear(scope / "attn2.to_out.0", square);
  }
  if (last_) return;
  text_out_ = nn::Linear(attention / "to_add_out", square);
  text_mlp_ = StreamMlp(scope / "ff_context", width, inner);
}

// Without a gate after them, scales come before shifts.
Tensor MmditBlock::norm_text(const Tensor& text, const std::vector<Tensor>& parts) const {
  return last_ ? modulated_norm(text, parts[1], parts[0])
               : modulated_norm(text, parts[0], parts[1]);
}

void MmditBlock::add_modulations(std::vector<const Modulation*>& modulations) const {
  modulations.push_back(&picture_norm_);
  modulations.push_back(&text_norm_);
}

void MmditBlock::operator()(Tensor& picture, Tensor& text,
                            std::span<const std::vector<Tensor>>& modulations) const {
  const std::vector<Tensor>& of_picture = next_modulation(modulations);
  const std::vector<Tensor>& of_text = next_modulation(modulations);
  const std::array streams{picture_heads_(modulated_norm(picture, of_picture[0], of_picture[1])),
                           text_heads_(norm_text(text, of_text))};
  const Tensor attended = stream_attention(streams, nullptr);
  const int64_t pixels = picture.dim(1), tokens = text.dim(1);
  Tensor h =
      gated_sum(picture, of_picture[2], picture_out_.over_last(attended.slice(Axis{1}, 0, pixels)));
  if (dual_) {
    const std::array own{own_heads_(modulated_norm(picture, of_picture[6], of_picture[7]))};
    h = gated_sum(h, of_picture[8], own_out_.over_last(stream_attention(own, nullptr)));
  }
  picture =
      gated_sum(h, of_picture[5], picture_mlp_(modulated_norm(h, of_picture[3], of_picture[4])));
  if (last_) return;
  h = gated_sum(text, of_text[2], text_out_.over_last(attended.slice(Axis{1}, pixels, tokens)));
  text = gated_sum(h, of_text[5], text_mlp_(modulated_norm(h, of_text[3], of_text[4])));
}

Mmdit::Mmdit(const nn::WeightScope& scope, const MmditConfig& config)
    : config_(config),
      info_{.in_channels = config.in_channels,
            .out_channels = config.out_channels,
            .context_width = config.context_width,
            .pooled_width = config.pooled_width,
            .patch = config.patch,
            .sample_size = config.sample_size},
      activations_(scope.activations()) {
  const int64_t width = config.width(), places = config.max_patches;
  patches_ = nn::Conv2d(scope / "pos_embed.proj",
                        {.in = config.in_channels, .out = width, .kernel = config.patch});
  places_ = (scope / "pos_embed")
                .array("pos_embed", {1, places * places, width})
                .reshape({places, places, width});
  vector_ = StreamVector(scope / "time_text_embed", config.pooled_width, width, false);
  context_ = nn::Linear(scope / "context_embedder",
                        {.in = config.context_width, .out = width, .bias = nn::Bias::required});
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks_.emplace_back(scope / "transformer_blocks" / cat(i), config, i);
  }
  out_norm_ = Modulation(scope / "norm_out", width, 2);
  out_ = nn::Linear(scope / "proj_out", {.in = width,
                                         .out = config.patch * config.patch * config.out_channels,
                                         .bias = nn::Bias::required});
}

std::unique_ptr<Conditioning> Mmdit::prepare(const TextStates& text) const {
  return prepare_stream(kOp, info_, text, context_, vector_, activations_);
}

// (batch, patches, width), with the middle of the table of places
Tensor Mmdit::embed_patches(const Tensor& x) const {
  const Tensor h = patches_(cast(x, activations_), ImageConvOptions{.stride = config_.patch});
  const auto [batch, rows, cols, width] = h.dims<4>();
  const int64_t most = config_.max_patches;
  check(rows <= most && cols <= most, kOp, "x is ", x, ", at most ", most * config_.patch,
        " along each side have a place");
  const Tensor places =
      places_.slice(Axis{0}, (most - rows) / 2, rows).slice(Axis{1}, (most - cols) / 2, cols);
  return (h + places).reshape({batch, rows * cols, width});
}

// rows: (batch, patches, patch * patch * channels)
Tensor Mmdit::join_patches(const Tensor& rows, int64_t height, int64_t width) const {
  const int64_t batch = rows.dim(0), patch = config_.patch, channels = config_.out_channels;
  const Tensor split =
      rows.reshape({batch * (height / patch), width / patch, patch, patch, channels});
  return contiguous(split.permute({0, 2, 1, 3, 4})).reshape({batch, height, width, channels});
}

Tensor Mmdit::operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                         const DenoiserOptions& options) const {
  const StreamPrompt& prompt = check_stream_call(kOp, info_, x, timesteps, conditioning);
  check(options.control == nullptr, kOp, "a control is for UNets");
  check(!options.circular.any(), kOp, "circular padding is for UNets");
  std::vector<const Modulation*> modulations;
  for (const MmditBlock& block : blocks_) block.add_modulations(modulations);
  modulations.push_back(&out_norm_);
  const auto modulated = modulate(vector_(timesteps, prompt.vector), modulations);
  std::span<const std::vector<Tensor>> to_come = modulated;
  Tensor picture = embed_patches(x), text = prompt.context;
  for (const MmditBlock& block : blocks_) block(picture, text, to_come);
  const std::vector<Tensor>& parts = next_modulation(to_come);
  const Tensor rows = out_.over_last(modulated_norm(picture, parts[1], parts[0]));
  return cast(join_patches(rows, x.dim(1), x.dim(2)), DType::f32);
}

}  // namespace rbee::models
