#include "rbee/engine/image/canvas.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/engine/image/latents.h"

namespace rbee::engine {
namespace {

constexpr uint8_t kHalfPainted = 128;

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

float share_of(uint8_t value) {
  return static_cast<float>(value) / kAllPainted;
}

// Pixels that are not kept are at 0.
Tensor tensor_of(const io::Pixels& pixels, const auto& is_kept, Device& device) {
  const auto count = static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height);
  std::vector<float> values;
  values.reserve(count * 3);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* p = pixels.values.data() + i * static_cast<size_t>(pixels.channels);
    const bool kept = is_kept(i);
    for (int c = 0; c < 3; ++c) values.push_back(kept ? signed_value(p[c]) : 0);
  }
  return from_host<float>(values, {1, pixels.height, pixels.width, 3}, device);
}

// A Gaussian of that deviation, whose weights add up to 1, cut off at three deviations.
std::vector<float> gaussian(int32_t deviation) {
  std::vector<float> out;
  float sum = 0;
  for (int32_t k = -3 * deviation; k <= 3 * deviation; ++k) {
    const float x = static_cast<float>(k) / static_cast<float>(deviation);
    out.push_back(std::exp(-x * x / 2));
    sum += out.back();
  }
  for (float& weight : out) weight /= sum;
  return out;
}

// The rows of a mask, each softened along itself, as many as one row of the result is made of: of
// large pictures the whole mask in floats would take more than the picture.
class SoftRows {
 public:
  SoftRows(const Mask& mask, const std::vector<float>& kernel)
      : mask_(mask),
        kernel_(kernel),
        width_(static_cast<size_t>(mask.width)),
        line_(width_ + kernel.size() - 1),
        rows_(kernel.size() * width_),
        blank_(kernel.size()) {}

  // Makes rows before `end` ready.
  void prepare(int32_t end) {
    for (; next_ < end; ++next_) soften(static_cast<size_t>(next_));
  }
  bool is_blank(size_t y) const { return blank_[y % kernel_.size()]; }
  const float* row(size_t y) const { return rows_.data() + y % kernel_.size() * width_; }

 private:
  void soften(size_t y) {
    const uint8_t* from = mask_.values.data() + y * width_;
    const bool blank = std::all_of(from, from + width_, [](uint8_t v) { return v == 0; });
    blank_[y % kernel_.size()] = blank;
    if (blank) return;
    const size_t reach = kernel_.size() / 2;
    std::fill_n(line_.begin(), reach, from[0]);
    std::copy_n(from, width_, line_.data() + reach);
    std::fill_n(line_.data() + reach + width_, reach, from[width_ - 1]);
    float* to = rows_.data() + y % kernel_.size() * width_;
    std::fill_n(to, width_, 0.0f);
    for (size_t k = 0; k < kernel_.size(); ++k) {
      for (size_t x = 0; x < width_; ++x) to[x] += kernel_[k] * line_[x + k];
    }
  }

  const Mask& mask_;
  const std::vector<float>& kernel_;
  const size_t width_;
  std::vector<float> line_;  // a row whose ends go on
  std::vector<float> rows_;
  std::vector<bool> blank_;
  int32_t next_ = 0;
};

}  // namespace

Mask mask_of(const io::Pixels& pixels, const MaskReading& how) {
  Mask out{.width = pixels.width, .height = pixels.height, .values = {}};
  out.values.reserve(static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height));
  const bool by_opacity = has_transparency(pixels);
  const auto step = static_cast<size_t>(pixels.channels);
  for (size_t i = 0; i < pixels.values.size(); i += step) {
    const uint8_t* p = pixels.values.data() + i;
    const double bright = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
    const bool light = !by_opacity && bright >= 127.5;
    const bool painted = by_opacity && (how.opaque ? p[3] > 128 : p[3] < 128);
    const bool repaint = light || painted;
    out.values.push_back(repaint != how.invert ? kAllPainted : 0);
  }
  return out;
}

Mask blurred(const Mask& mask, int32_t pixels) {
  if (pixels == 0) return mask;
  const std::vector<float> kernel = gaussian(pixels);
  const int32_t reach = 3 * pixels;
  SoftRows rows(mask, kernel);
  Mask out{mask.width, mask.height, std::vector<uint8_t>(mask.values.size())};
  std::vector<float> sum(static_cast<size_t>(mask.width));
  for (int32_t y = 0; y < mask.height; ++y) {
    check_cancelled("mask_image");
    rows.prepare(std::min(y + reach + 1, mask.height));
    std::ranges::fill(sum, 0.0f);
    bool blank = true;
    for (int32_t k = -reach; k <= reach; ++k) {
      const auto at = static_cast<size_t>(std::clamp(y + k, 0, mask.height - 1));
      if (rows.is_blank(at)) continue;
      blank = false;
      const float weight = kernel[static_cast<size_t>(k + reach)];
      const float* row = rows.row(at);
      for (size_t x = 0; x < sum.size(); ++x) sum[x] += weight * row[x];
    }
    if (!blank) std::ranges::transform(sum, out.values.begin() + int64_t{y} * out.width, byte_of);
  }
  return out;
}

Tensor latent_mask(const Mask& mask, int32_t scale, Device& device) {
  const int32_t height = mask.height / scale;
  const int32_t width = mask.width / scale;
  std::vector<float> values;
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      values.push_back(
          share_of(mask.values[static_cast<size_t>(y) * static_cast<size_t>(scale * mask.width) +
                               static_cast<size_t>(x) * static_cast<size_t>(scale)]));
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
      std::transform(row, row + scale, std::back_inserter(values), share_of);
    }
  }
  return from_host<float>(values, {1, height, width, int64_t{scale} * scale}, device);
}

io::Pixels on_white(io::Pixels pixels) {
  if (pixels.channels != 4) return pixels;
  constexpr uint32_t kWhite = 255;
  const size_t row = static_cast<size_t>(pixels.width) * 4;
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    if (i % row == 0) check_cancelled("image");
    const uint32_t opacity = pixels.values[i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t sum = pixels.values[i + c] * opacity + kWhite * (kWhite - opacity);
      pixels.values[i + c] = static_cast<uint8_t>((sum + kWhite / 2) / kWhite);
    }
  }
  return without_opacity(std::move(pixels));
}

io::Pixels without_opacity(io::Pixels pixels) {
  if (pixels.channels != 4) return pixels;
  // In place: a pixel's colours are written before those that are still to be read.
  const size_t row = static_cast<size_t>(pixels.width) * 4;
  auto to = pixels.values.begin();
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    if (i % row == 0) check_cancelled("image");
    to = std::copy_n(&pixels.values[i], 3, to);
  }
  pixels.channels = 3;
  pixels.values.erase(to, pixels.values.end());
  pixels.values.shrink_to_fit();
  return pixels;
}

Tensor image_tensor(const io::Pixels& pixels, Device& device) {
  return tensor_of(pixels, [](size_t) { return true; }, device);
}

Tensor masked_tensor(const io::Pixels& pixels, const Mask& mask, Device& device) {
  return tensor_of(pixels, [&](size_t i) { return mask.values[i] < kHalfPainted; }, device);
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
  const std::vector<float> values(mask.values.begin(), mask.values.end());
  const std::vector<float> done = enlarged(values, from, height, width);
  Mask out{width, height, {}};
  out.values.reserve(done.size());
  std::ranges::transform(done, std::back_inserter(out.values), byte_of);
  return out;
}

Mask binary(const Mask& mask) {
  Mask out = mask;
  for (uint8_t& value : out.values) value = value >= kHalfPainted ? kAllPainted : 0;
  return out;
}

}  // namespace rbee::engine
