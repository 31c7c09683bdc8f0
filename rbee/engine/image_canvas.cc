#include "rbee/engine/image_canvas.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/engine/image_latents.h"

namespace rbee::engine {
namespace {

// Rounds; not by lround, whose calls take most of a picture's conversion.
uint8_t byte_of(float value) {
  return static_cast<uint8_t>(static_cast<int>(std::clamp(value, 0.0f, 255.0f) + 0.5f));
}

bool has_transparency(const io::Pixels& pixels) {
  if (pixels.channels != 4) return false;
  for (size_t i = 3; i < pixels.values.size(); i += 4) {
    if (pixels.values[i] < 255) return true;
  }
  return false;
}

float signed_value(uint8_t value) {
  return static_cast<float>(value) / 127.5f - 1;
}

// Every line of `values` through the kernel, and rows and columns change places.
std::vector<float> smooth(const std::vector<float>& values, int32_t lines, int32_t count,
                          const std::vector<float>& kernel) {
  const auto reach = static_cast<int32_t>(kernel.size() / 2);
  std::vector<float> out(values.size());
  for (int32_t line = 0; line < lines; ++line) {
    const float* in = values.data() + int64_t{line} * count;
    for (int32_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int32_t k = -reach; k <= reach; ++k) {
        sum += kernel[static_cast<size_t>(k + reach)] * in[std::clamp(i + k, 0, count - 1)];
      }
      out[static_cast<size_t>(i) * static_cast<size_t>(lines) + static_cast<size_t>(line)] = sum;
    }
  }
  return out;
}

}  // namespace

Mask mask_of(const io::Pixels& pixels, const MaskReading& how) {
  Mask out{.width = pixels.width, .height = pixels.height, .values = {}};
  const bool by_opacity = has_transparency(pixels);
  const auto step = static_cast<size_t>(pixels.channels);
  for (size_t i = 0; i < pixels.values.size(); i += step) {
    const uint8_t* p = pixels.values.data() + i;
    const double bright = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
    const bool light = !by_opacity && bright >= 127.5;
    const bool painted = by_opacity && (how.opaque ? p[3] > 128 : p[3] < 128);
    const bool repaint = light || painted;
    out.values.push_back(repaint != how.invert ? 1.0f : 0.0f);
  }
  return out;
}

Mask blurred(const Mask& mask, int32_t pixels) {
  if (pixels == 0) return mask;
  std::vector<float> kernel;
  const int32_t reach = 3 * pixels;
  float sum = 0;
  for (int32_t k = -reach; k <= reach; ++k) {
    const float x = static_cast<float>(k) / static_cast<float>(pixels);
    kernel.push_back(std::exp(-x * x / 2));
    sum += kernel.back();
  }
  for (float& weight : kernel) weight /= sum;
  Mask out = mask;
  out.values =
      smooth(smooth(mask.values, mask.height, mask.width, kernel), mask.width, mask.height, kernel);
  return out;
}

Tensor latent_mask(const Mask& mask, int32_t scale, Device& device) {
  const int32_t height = mask.height / scale;
  const int32_t width = mask.width / scale;
  std::vector<float> values;
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      values.push_back(
          mask.values[static_cast<size_t>(y) * static_cast<size_t>(scale * mask.width) +
                      static_cast<size_t>(x) * static_cast<size_t>(scale)]);
    }
  }
  return from_host<float>(values, {1, height, width, 1}, device);
}

Tensor mask_pixels(const Mask& mask, int32_t scale, Device& device) {
  const int64_t height = mask.height / scale, width = mask.width / scale;
  std::vector<float> values;
  values.reserve(mask.values.size());
  for (int64_t i = 0; i < height * width; ++i) {
    const int64_t top = i / width * scale, left = i % width * scale;
    for (int64_t y = top; y < top + scale; ++y) {
      const auto row = mask.values.begin() + y * mask.width + left;
      values.insert(values.end(), row, row + scale);
    }
  }
  return from_host<float>(values, {1, height, width, int64_t{scale} * scale}, device);
}

io::Pixels on_white(const io::Pixels& pixels) {
  if (pixels.channels != 4) return pixels;
  constexpr uint32_t kWhite = 255;
  io::Pixels out{.width = pixels.width, .height = pixels.height, .channels = 3, .values = {}};
  out.values.reserve(pixels.values.size() / 4 * 3);
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    const uint32_t opacity = pixels.values[i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t sum = pixels.values[i + c] * opacity + kWhite * (kWhite - opacity);
      out.values.push_back(static_cast<uint8_t>((sum + kWhite / 2) / kWhite));
    }
  }
  return out;
}

Tensor image_tensor(const io::Pixels& pixels, Device& device) {
  const Mask nothing{
      pixels.width, pixels.height,
      std::vector<float>(static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height))};
  return masked_tensor(pixels, nothing, device);
}

Tensor masked_tensor(const io::Pixels& pixels, const Mask& mask, Device& device) {
  std::vector<float> values;
  values.reserve(mask.values.size() * 3);
  for (size_t i = 0; i < mask.values.size(); ++i) {
    const uint8_t* p = pixels.values.data() + i * static_cast<size_t>(pixels.channels);
    for (int c = 0; c < 3; ++c) values.push_back(mask.values[i] < 0.5f ? signed_value(p[c]) : 0);
  }
  return from_host<float>(values, {1, pixels.height, pixels.width, 3}, device);
}

io::Pixels pixels_of(std::span<const float> values, int32_t width, int32_t height) {
  if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
    throw NotFinite("vae",
                    "the decoded picture has values that are not finite; run with activations of "
                    "f32 or bf16, or with a VAE that was made for f16");
  }
  io::Pixels out{.width = width, .height = height, .channels = 3, .values = {}};
  out.values.resize(values.size());
  std::ranges::transform(values, out.values.begin(),
                         [](float v) { return byte_of((v / 2 + 0.5f) * 255); });
  return out;
}

Mask resized(const Mask& mask, int32_t width, int32_t height) {
  const Shape from{1, mask.height, mask.width, 1};
  return {width, height, enlarged(mask.values, from, height, width)};
}

Mask binary(const Mask& mask) {
  Mask out = mask;
  for (float& value : out.values) value = value >= 0.5f ? 1.0f : 0.0f;
  return out;
}

io::Pixels composed(const io::Pixels& painted, const io::Pixels& original, const Mask& mask) {
  io::Pixels out = painted;
  for (size_t i = 0; i < mask.values.size(); ++i) {
    const uint8_t* kept = original.values.data() + i * static_cast<size_t>(original.channels);
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& value = out.values[i * 3 + c];
      value = byte_of(mask.values[i] * value + (1 - mask.values[i]) * kept[c]);
    }
  }
  return out;
}

}  // namespace rbee::engine
