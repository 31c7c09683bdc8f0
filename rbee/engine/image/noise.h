#pragma once
// Normal numbers for latents: drawn in PyTorch's order, channels first, and returned channels last.

#include <span>

#include "rbee/diffusion/random.h"
#include "rbee/engine/api/image.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

std::unique_ptr<diffusion::Normals> make_normals(NoiseSource source, uint64_t seed);

// One call of randn((batch, channels, height, width)) for shape (batch, height, width, channels).
Tensor normal_latent(diffusion::Normals& normals, const Shape& shape, Device& device);

// Where an image's random numbers come from.
struct NoiseSeed {
  uint64_t seed = 0;
  uint64_t variation_seed = 0;
  float variation_strength = 0;  // 0 to 1
  uint64_t delta = 0;  // added to the seed after the start; 0 = continue with the same numbers
  // Latents: size of the noise in the middle of a pass's start; 0 = all of it.
  int64_t height = 0, width = 0;
};

// Interpolates from `low` to `high` along the sphere (Shoemake 1985) by columns, as AUTOMATIC1111:
// all rows of one channel and column form one vector. Values: (height, width, channels) of `shape`,
// (1, height, width, channels); strength: 0 to 1.
std::vector<float> between_noises(std::span<const float> low, std::span<const float> high,
                                  const Shape& shape, double strength);

// One generator for each image of a batch, so that an image is the same in any batch.
class BatchNoise {
 public:
  BatchNoise(NoiseSource source, const std::vector<NoiseSeed>& seeds);
  // One call of each generator; shape: (batch, height, width, channels)
  Tensor draw(const Shape& shape, Device& device);
  // The same for a pass's start, with everything that the seeds say.
  Tensor draw_start(const Shape& shape, Device& device);
  diffusion::Normals& of(int64_t image) { return *normals_[static_cast<size_t>(image)]; }

 private:
  std::vector<float> start_of(size_t image, const Shape& shape);

  NoiseSource source_;
  std::vector<NoiseSeed> seeds_;
  std::vector<std::unique_ptr<diffusion::Normals>> normals_;
};

}  // namespace rbee::engine
