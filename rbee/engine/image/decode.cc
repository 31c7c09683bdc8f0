#include "rbee/engine/image/decode.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/engine/image/noise.h"
#include "rbee/ops/elementwise.h"

namespace rbee::engine {
namespace {

constexpr size_t kColours = 3;

Tensor for_decoder(const models::VaeInfo& info, const Tensor& latent) {
  return affine(latent, 1.0 / info.scaling_factor, info.shift_factor);
}

}  // namespace

Tensor latent_of(const models::VaeInfo& vae, const models::LatentDistribution& found,
                 diffusion::Normals* normals) {
  Tensor z = found.mean;
  if (normals != nullptr && found.log_variance.defined()) {
    const Tensor deviation = unary(UnaryOp::exp, affine(found.log_variance, 0.5, 0));
    z = z + deviation * normal_latent(*normals, z.shape(), z.device());
  }
  return affine(z, vae.scaling_factor, -double{vae.shift_factor} * vae.scaling_factor);
}

io::Pixels decode_latent(const models::Vae& vae, const Tensor& latent, const TileOptions& options) {
  const std::vector<float> values = decode_in_tiles(vae, for_decoder(vae.info(), latent), options);
  const auto side = [&](int axis) {
    return static_cast<int32_t>(latent.dim(axis) * vae.info().scale);
  };
  return pixels_of(values, side(2), side(1));
}

void check_finite(std::span<const float> latent) {
  if (std::ranges::all_of(latent, [](float v) { return std::isfinite(v); })) return;
  throw NotFinite("denoiser",
                  "the latents have values that are not finite, the picture would be black; run "
                  "with activations of f32 or bf16, or a lower guidance_scale");
}

PreviewMap::PreviewMap(const models::Vae& vae, Device& device)
    : channels_(static_cast<size_t>(vae.info().latent_channels)) {
  constexpr int64_t kPatches = 8;  // along each side
  constexpr int64_t kPatch = 4;    // latents on a patch's side
  constexpr int64_t kSide = kPatches * kPatch;
  constexpr uint64_t kSeed = 1;
  constexpr double kRidge = 1e-3;  // keeps channels that do nothing from growing
  diffusion::TorchNormals normals(kSeed);
  std::vector<float> patches(static_cast<size_t>(kPatches * kPatches) * channels_);
  normals.fill(patches);
  std::vector<float> latent;
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    const int64_t patch = i / kSide / kPatch * kPatches + i % kSide / kPatch;
    const auto first = patches.begin() + patch * static_cast<int64_t>(channels_);
    latent.insert(latent.end(), first, first + static_cast<int64_t>(channels_));
  }
  const Shape shape{1, kSide, kSide, vae.info().latent_channels};
  const Tensor picture =
      vae.decode(for_decoder(vae.info(), from_host<float>(latent, shape, device)));
  const std::vector<float> colours = picture.to_host<float>();
  // Normal equations of the middle pixel of each latent's square.
  const size_t n = channels_ + 1;
  std::vector<double> a(n * n);
  std::vector<double> b(n * kColours);
  const int64_t scale = vae.info().scale;
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    std::vector<double> row(latent.begin() + i * static_cast<int64_t>(channels_),
                            latent.begin() + (i + 1) * static_cast<int64_t>(channels_));
    row.push_back(1);
    const int64_t y = i / kSide * scale + scale / 2;
    const int64_t x = i % kSide * scale + scale / 2;
    const auto colour = static_cast<size_t>(y * kSide * scale + x) * kColours;
    for (size_t k = 0; k < n; ++k) {
      for (size_t l = 0; l < n; ++l) a[k * n + l] += row[k] * row[l];
      for (size_t c = 0; c < kColours; ++c) b[k * kColours + c] += row[k] * colours[colour + c];
    }
  }
  for (size_t k = 0; k < n; ++k) a[k * n + k] += kRidge * static_cast<double>(kSide * kSide);
  factors_ = solved(std::move(a), std::move(b), n);
}

io::Pixels PreviewMap::operator()(std::span<const float> latent, int32_t width,
                                  int32_t height) const {
  std::vector<float> values;
  for (size_t i = 0; i < latent.size(); i += channels_) {
    for (size_t c = 0; c < kColours; ++c) {
      double sum = factors_[channels_ * kColours + c];
      for (size_t k = 0; k < channels_; ++k) sum += factors_[k * kColours + c] * latent[i + k];
      values.push_back(static_cast<float>(sum));
    }
  }
  return pixels_of(values, width, height);
}

std::vector<double> solved(std::vector<double> a, std::vector<double> b, size_t n) {
  const size_t columns = b.size() / n;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    for (size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    for (size_t j = 0; j < columns; ++j) std::swap(b[k * columns + j], b[pivot * columns + j]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k] / a[k * n + k];
      for (size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      for (size_t j = 0; j < columns; ++j) b[i * columns + j] -= factor * b[k * columns + j];
    }
  }
  for (size_t i = 0; i < b.size(); ++i) b[i] /= a[i / columns * (n + 1)];
  return b;
}

}  // namespace rbee::engine
