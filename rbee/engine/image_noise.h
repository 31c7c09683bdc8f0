#pragma once
// Normal numbers for latents: drawn as PyTorch's programs draw them, channels first, and given with
// the channels last.

#include "rbee/diffusion/random.h"
#include "rbee/engine/image_api.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

std::unique_ptr<diffusion::Normals> make_normals(NoiseSource source, uint64_t seed);

// One call of randn((batch, channels, height, width)) for shape (batch, height, width, channels).
Tensor normal_latent(diffusion::Normals& normals, const Shape& shape, Device& device);

// One generator for each image of a batch, so that an image is the same in any batch.
class BatchNoise {
 public:
  BatchNoise(NoiseSource source, uint64_t first_seed, int64_t batch);
  // One call of each generator; shape: (batch, height, width, channels)
  Tensor draw(const Shape& shape, Device& device);
  diffusion::Normals& of(int64_t image) { return *normals_[static_cast<size_t>(image)]; }

 private:
  std::vector<std::unique_ptr<diffusion::Normals>> normals_;
};

}  // namespace rbee::engine
