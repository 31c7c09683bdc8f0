#include "rbee/engine/image_noise.h"

#include <span>

namespace rbee::engine {
namespace {

// Appends one image's numbers, drawn channel by channel, pixel by pixel.
void append_image(diffusion::Normals& normals, const Shape& shape, std::vector<float>& out) {
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  const auto channels = static_cast<size_t>(shape[3]);
  std::vector<float> drawn(static_cast<size_t>(shape[0]) * pixels * channels);
  normals.fill(drawn);
  for (size_t image = 0; image < static_cast<size_t>(shape[0]); ++image) {
    const float* from = drawn.data() + image * pixels * channels;
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t c = 0; c < channels; ++c) out.push_back(from[c * pixels + i]);
    }
  }
}

}  // namespace

std::unique_ptr<diffusion::Normals> make_normals(NoiseSource source, uint64_t seed) {
  if (source == NoiseSource::philox) return std::make_unique<diffusion::PhiloxNormals>(seed);
  return std::make_unique<diffusion::TorchNormals>(seed);
}

Tensor normal_latent(diffusion::Normals& normals, const Shape& shape, Device& device) {
  std::vector<float> values;
  append_image(normals, shape, values);
  return from_host<float>(values, shape, device);
}

BatchNoise::BatchNoise(NoiseSource source, uint64_t first_seed, int64_t batch) {
  for (int64_t i = 0; i < batch; ++i) {
    normals_.push_back(make_normals(source, first_seed + static_cast<uint64_t>(i)));
  }
}

Tensor BatchNoise::draw(const Shape& shape, Device& device) {
  std::vector<float> values;
  const Shape one{1, shape[1], shape[2], shape[3]};
  for (const auto& normals : normals_) append_image(*normals, one, values);
  return from_host<float>(values, shape, device);
}

}  // namespace rbee::engine
