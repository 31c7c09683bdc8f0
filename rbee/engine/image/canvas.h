#pragma once
// Converts pictures between files and tensors: sizes, masks, opacity.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/image/resize.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

// The model's result is not finite although the device is fine: code unsupported, with a remedy in
// the message.
class NotFinite final : public Error {
 public:
  NotFinite(std::string_view op, std::string_view message)
      : Error(Code::unsupported, op, message) {}
};

// For each pixel, 0 to 255: how much of it is painted; rows from the top.
struct Mask {
  int32_t width = 0;
  int32_t height = 0;
  std::vector<uint8_t> values;
};
inline constexpr uint8_t kAllPainted = 255;

struct MaskReading {
  bool opaque = false;  // use the opaque part of a partly transparent mask
  bool invert = false;
};
// The mask of a picture: its transparent pixels (or opaque ones, as in AUTOMATIC1111), or without
// transparency its bright ones (Rec. 601). Each pixel is all or nothing, with the border at one
// half.
Mask mask_of(const io::Pixels& pixels, const MaskReading& how);
// A Gaussian blur with this standard deviation in pixels; border values continue outwards.
Mask blurred(const Mask& mask, int32_t pixels);
// The mask at the upper left pixel of each latent (nearest neighbour), (1, h, w, 1), 0 to 1.
Tensor latent_mask(const Mask& mask, int32_t scale, Device& device);

// The mask's pixels at each latent, row by row, as channels: (1, h, w, scale * scale), 0 to 1.
Tensor mask_pixels(const Mask& mask, int32_t scale, Device& device);

// Blends the picture over white, with Pillow's rounding.
io::Pixels on_white(io::Pixels pixels);
// Drops the opacity and keeps the colours.
io::Pixels without_opacity(io::Pixels pixels);
// (1, height, width, 3) in [-1, 1]; ignores the opacity.
Tensor image_tensor(const io::Pixels& pixels, Device& device);
// The same with masked pixels at 0, mid-grey.
Tensor masked_tensor(const io::Pixels& pixels, const Mask& mask, Device& device);
// Pixels from values in [-1, 1], channels last; clamps others. Throws NotFinite.
io::Pixels pixels_of(std::span<const float> values, int32_t width, int32_t height);

// Bilinear; pixel centres are aligned.
Mask resized(const Mask& mask, int32_t width, int32_t height);
// All or nothing, with the border at one half.
Mask binary(const Mask& mask);

}  // namespace rbee::engine
