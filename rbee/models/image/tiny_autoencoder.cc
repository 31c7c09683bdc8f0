#include "rbee/models/image/tiny_autoencoder.h"

#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/layers.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/tiny_file.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "tiny VAE";
constexpr int64_t kColours = 3;
constexpr size_t kMostLevels = 8;  // pictures are 2^7 times as large as latents
constexpr double kMagnitude = 3;   // of latents: larger ones are bent below it

std::vector<int64_t> read_blocks(const io::JsonConfig& config, const char* field,
                                 std::vector<int64_t> fallback) {
  const auto blocks = config.integers(field, {0, 64});
  return blocks.empty() ? fallback : blocks;
}

int64_t read_width(const io::JsonConfig& config) {
  int64_t width = 64;
  for (const char* field : {"encoder_block_out_channels", "decoder_block_out_channels"}) {
    const auto widths = config.integers(field, {1, 1 << 16});
    if (!widths.empty() && std::string_view(field).starts_with('e')) width = widths.front();
    for (const int64_t each : widths) {
      if (each == width) continue;
      fail(Code::unsupported, config.describe(field), "levels of ", width, " and of ", each,
           " channels are not implemented");
    }
  }
  return width;
}

ModelPart read_tiny(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return read_part_folder(path, "AutoencoderTiny");
  io::refuse_pickle(path);
  if (auto part = find_tiny_file(path)) return std::move(*part);
  fail(Code::unsupported, path.string(), "the file has no tensors of a tiny autoencoder");
}

}  // namespace

TinyAutoencoderConfig TinyAutoencoderConfig::read(const io::JsonConfig& config) {
  for (const auto& [field, known] :
       {std::pair{"act_fn", "relu"}, std::pair{"upsample_fn", "nearest"}}) {
    const std::string value = config.text_or(field, known);
    if (value == known) continue;
    fail(Code::unsupported, config.describe(field), "\"", value, "\" is not implemented");
  }
  TinyAutoencoderConfig out;
  out.encoder_blocks = read_blocks(config, "num_encoder_blocks", {1, 3, 3, 3});
  out.decoder_blocks = read_blocks(config, "num_decoder_blocks", {3, 3, 3, 1});
  check(out.encoder_blocks.size() == out.decoder_blocks.size(),
        config.describe("num_decoder_blocks"), "it lists ", out.decoder_blocks.size(),
        " levels, num_encoder_blocks ", out.encoder_blocks.size());
  check(out.decoder_blocks.size() <= kMostLevels, config.describe("num_decoder_blocks"),
        "it lists ", out.decoder_blocks.size(), " levels, wanted at most ", kMostLevels);
  out.width = read_width(config);
  out.latent_channels = config.integer_or("latent_channels", 4, {1, 1 << 10});
  out.scaling_factor = static_cast<float>(config.number_or("scaling_factor", 1, io::kAboveZero));
  out.shift_factor = static_cast<float>(config.number_or("shift_factor", 0));
  return out;
}

void TinyHalf::add_conv(const nn::WeightScope& scope, Kind kind, const nn::Conv2dShape& shape) {
  steps_.push_back({.kind = kind, .first = nn::Conv2d(scope / cat(next_++), shape)});
}

void TinyHalf::add_blocks(const nn::WeightScope& scope, int64_t count, int64_t width) {
  const nn::Conv2dShape same{.in = width, .out = width};
  for (int64_t i = 0; i < count; ++i) {
    const nn::WeightScope block = scope / cat(next_++) / "conv";
    steps_.push_back({Kind::block, nn::Conv2d(block / "0", same), nn::Conv2d(block / "2", same),
                      nn::Conv2d(block / "4", same)});
  }
}

TinyHalf TinyHalf::encoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config) {
  const int64_t width = config.width;
  TinyHalf half;
  for (size_t i = 0; i < config.encoder_blocks.size(); ++i) {
    if (i == 0) {
      half.add_conv(scope, Kind::conv, {.in = kColours, .out = width});
    } else {
      half.add_conv(scope, Kind::halving, {.in = width, .out = width, .bias = nn::Bias::none});
    }
    half.add_blocks(scope, config.encoder_blocks[i], width);
  }
  half.add_conv(scope, Kind::conv, {.in = width, .out = config.latent_channels});
  return half;
}

TinyHalf TinyHalf::decoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config) {
  const int64_t width = config.width;
  TinyHalf half;
  half.add_conv(scope, Kind::relu_conv, {.in = config.latent_channels, .out = width});
  ++half.next_;  // the activation has a number
  for (size_t i = 0; i < config.decoder_blocks.size(); ++i) {
    half.add_blocks(scope, config.decoder_blocks[i], width);
    if (i + 1 == config.decoder_blocks.size()) continue;
    ++half.next_;  // so has the enlargement
    half.add_conv(scope, Kind::doubling, {.in = width, .out = width, .bias = nn::Bias::none});
  }
  half.add_conv(scope, Kind::conv, {.in = width, .out = kColours});
  return half;
}

Tensor TinyHalf::run(const Step& step, const Tensor& x, Circular circular) {
  const ImageConvOptions same = padded(1, circular);
  switch (step.kind) {
    case Kind::conv:
      return step.first(x, same);
    case Kind::relu_conv:
      return unary(UnaryOp::relu, step.first(x, same));
    case Kind::halving: {
      ImageConvOptions halved = same;
      halved.stride = 2;
      return step.first(x, halved);
    }
    case Kind::doubling:
      return upsample_conv(x, step.first, 2 * x.dim(1), 2 * x.dim(2), circular);
    case Kind::block:
      break;
  }
  ImageConvOptions onto = same;
  onto.residual = x;
  const Tensor first = unary(UnaryOp::relu, step.first(x, same));
  const Tensor h = unary(UnaryOp::relu, step.second(first, same));
  return unary(UnaryOp::relu, step.third(h, onto));
}

Tensor TinyHalf::operator()(const Tensor& x, Circular circular, const Between& between) const {
  Tensor h = x;
  for (const Step& step : steps_) {
    if (between) between();
    h = run(step, h, circular);
  }
  return h;
}

TinyAutoencoder::TinyAutoencoder(const nn::WeightScope& scope, const TinyAutoencoderConfig& config)
    : activations_(scope.activations()) {
  if ((scope / "encoder.layers.0").has("weight")) {
    encoder_ = TinyHalf::encoder(scope / "encoder.layers", config);
  }
  decoder_ = TinyHalf::decoder(scope / "decoder.layers", config);
  info_.latent_channels = config.latent_channels;
  info_.scale = int64_t{1} << (config.decoder_blocks.size() - 1);
  info_.scaling_factor = config.scaling_factor;
  info_.shift_factor = config.shift_factor;
}

// Both halves work in [0, 1].
LatentDistribution TinyAutoencoder::encode(const Tensor& image, Circular circular) const {
  if (!encoder_.defined()) {
    fail(Code::unsupported, kOp, "the checkpoint has no encoder, so pictures cannot be read");
  }
  check(image.rank() == 4 && image.dim(3) == kColours && image.dim(1) % info_.scale == 0 &&
            image.dim(2) % info_.scale == 0,
        kOp, "the picture is ", image, ", wanted (batch, height, width, 3) with sizes that are ",
        "multiples of ", info_.scale);
  return {cast(encoder_(affine(cast(image, activations_), 0.5, 0.5), circular), DType::f32), {}};
}

Tensor TinyAutoencoder::decode(const Tensor& latent, const Between& between,
                               Circular circular) const {
  check(latent.rank() == 4 && latent.dim(3) == info_.latent_channels, kOp, "the latent is ", latent,
        ", wanted (batch, height, width, ", info_.latent_channels, ")");
  const Tensor bent =
      affine(unary(UnaryOp::tanh, affine(latent, 1 / kMagnitude, 0)), kMagnitude, 0);
  return affine(cast(decoder_(cast(bent, activations_), circular, between), DType::f32), 2, -1);
}

std::unique_ptr<Vae> load_tiny_autoencoder(const std::filesystem::path& path,
                                           const ImageModel& model) {
  const ModelPart part = read_tiny(path);
  if (part.class_name != "AutoencoderTiny") {
    fail(Code::unsupported, part.config.source(), "the part is a ", part.class_name,
         ", wanted an AutoencoderTiny");
  }
  const nn::WeightScope scope(
      part.weights, {.device = model.device, .own_names = true, .activations = model.activations});
  auto vae = std::make_unique<TinyAutoencoder>(scope, TinyAutoencoderConfig::read(part.config));
  scope.finish();
  const VaeInfo &own = model.vae->info(), &tiny = vae->info();
  check(tiny.latent_channels == own.latent_channels && tiny.scale == own.scale,
        part.config.source(), "its latents have ", tiny.latent_channels, " channels at 1/",
        tiny.scale, ", the model's ", own.latent_channels, " at 1/", own.scale,
        ": it is for another family");
  return vae;
}

}  // namespace rbee::models
