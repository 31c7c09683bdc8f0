#pragma once
// Pictures between files and tensors: sizes, masks, and what is kept of a picture.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/image/resize.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

// What a model computed is not finite, the device is well: code unsupported, the message names the
// remedy.
class NotFinite final : public Error {
 public:
  NotFinite(std::string_view op, std::string_view message)
      : Error(Code::unsupported, op, message) {}
};

// One value a pixel, 0 to 255: how much of it is painted; rows from the top.
struct Mask {
  int32_t width = 0;
  int32_t height = 0;
  std::vector<uint8_t> values;
};
inline constexpr uint8_t kAllPainted = 255;

struct MaskReading {
  bool opaque = false;  // the opaque part of a mask that is partly transparent
  bool invert = false;
};
// What is to be repainted: where `pixels` is transparent (or opaque, as AUTOMATIC1111 has it), or
// without any transparency where it is bright (Rec. 601); all or nothing with the border at one
// half.
Mask mask_of(const io::Pixels& pixels, const MaskReading& how);
// A Gaussian of that standard deviation in pixels; at the borders their values go on.
Mask blurred(const Mask& mask, int32_t pixels);
// The mask's value at the upper left pixel of each latent (nearest neighbour), (1, h, w, 1), 0 to
// 1.
Tensor latent_mask(const Mask& mask, int32_t scale, Device& device);

// The mask's pixels at each latent, row by row, as channels: (1, h, w, scale * scale), 0 to 1.
Tensor mask_pixels(const Mask& mask, int32_t scale, Device& device);

// Without opacity, over white; by Pillow's rounding.
io::Pixels on_white(io::Pixels pixels);
// The colours alone.
io::Pixels without_opacity(io::Pixels pixels);
// (1, height, width, 3) in [-1, 1]; the opacity is left out.
Tensor image_tensor(const io::Pixels& pixels, Device& device);
// The same with masked pixels at 0, mid-grey.
Tensor masked_tensor(const io::Pixels& pixels, const Mask& mask, Device& device);
// Values in [-1, 1], channels last, as pixels; beyond is clamped. Throws NotFinite.
io::Pixels pixels_of(std::span<const float> values, int32_t width, int32_t height);

// Bilinear, of masks; pixel centres are aligned.
Mask resized(const Mask& mask, int32_t width, int32_t height);
// All or nothing with the border at one half.
Mask binary(const Mask& mask);

}  // namespace rbee::engine
