#pragma once
// From latents to pictures and back: the VAE, and a cheap map for previews.

#include "rbee/diffusion/random.h"
#include "rbee/engine/image/canvas.h"
#include "rbee/engine/image/tiles.h"
#include "rbee/models/image/parts.h"

namespace rbee::engine {

// A sample of the VAE's distribution with the numbers of `normals`, or its mean if that is null;
// scaled for the denoiser.
Tensor latent_of(const models::VaeInfo& vae, const models::LatentDistribution& found,
                 diffusion::Normals* normals);

// latent: (1, h, w, channels), scaled for the denoiser. Throws as decode_in_tiles(), and NotFinite.
io::Pixels decode_latent(const models::Vae& vae, const Tensor& latent,
                         const TileOptions& options = {});

// Throws NotFinite.
void check_finite(std::span<const float> latent);

// The colour of a latent pixel as a linear function of its channels, fitted to the VAE's output for
// random patches (one small decode).
class PreviewMap {
 public:
  explicit PreviewMap(const models::Vae& vae, Device& device);
  // latent: h * w * channels values. Returns a picture of h x w pixels.
  io::Pixels operator()(std::span<const float> latent, int32_t width, int32_t height) const;

 private:
  size_t channels_;
  std::vector<double> factors_;  // (channels + 1, 3), the last row is the constant
};

// Solves A X = B by elimination with pivots; A: (n, n) and B: (n, columns), row-major, consumed.
std::vector<double> solved(std::vector<double> a, std::vector<double> b, size_t n);

}  // namespace rbee::engine
