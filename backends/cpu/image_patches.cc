#include "backends/cpu/image_patches.h"

#include <algorithm>

#include "backends/cpu/image_conv_parts.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {

Patches::Patches(const ImageConvArgs& args, const View& x, const FloatRows& rows)
    : args_(args),
      rows_(rows),
      x_(x),
      in_(x.size(3)),
      kernel_w_(args.weight.size(2)),
      depth_(args.weight.size(1) * kernel_w_ * in_),
      scale_(args.upsample ? 2 : 1),
      element_bytes_(info(x.dtype).block_bytes) {}

bool Patches::plain() const {
  const View& y = args_.y;
  const bool pointwise = depth_ == in_ && args_.stride == 1 && scale_ == 1;
  const bool same_pixels = x_.size(1) == y.size(1) && x_.size(2) == y.size(2) &&
                           args_.pad_top == 0 && args_.pad_left == 0;
  const bool even = x_.stride(3) == 1 && x_.stride(1) == x_.size(2) * x_.stride(2) &&
                    x_.stride(0) == x_.size(1) * x_.stride(1);
  return pointwise && same_pixels && even;
}

void Patches::gather(int64_t p, int64_t k, int64_t count, float* to) const {
  gather_as(p, k, count, to);
}
void Patches::gather(int64_t p, int64_t k, int64_t count, uint16_t* to) const {
  gather_as(p, k, count, to);
}
void Patches::gather(int64_t p, int64_t k, int64_t count, int8_t* to) const {
  gather_as(p, k, count, to);
}

template <typename T>
void Patches::gather_as(int64_t p, int64_t k, int64_t count, T* out) const {
  const int64_t height = args_.y.size(1), width = args_.y.size(2);
  const std::byte* image = at(p / (height * width) * x_.stride(0));
  const int64_t row = p / width % height * args_.stride - args_.pad_top;
  const int64_t column = p % width * args_.stride - args_.pad_left;
  T* to = gather_row(image, row, column, {k, std::min(k + count, depth_)}, out);
  std::fill(to, out + count, T{});
}

// Element `offset` of x.
const std::byte* Patches::at(int64_t offset) const {
  return x_.as<std::byte>() + offset * element_bytes_;
}

void Patches::copy(const std::byte* from, int64_t count, float* to) const {
  copy_channels(rows_, x_.dtype, from, x_.stride(3), count, to);
}

template <typename T>
void Patches::copy(const std::byte* from, int64_t count, T* to) const {
  const int64_t step = x_.stride(3);
  const auto* values = reinterpret_cast<const T*>(from);
  if (step == 1) {
    std::copy_n(values, count, to);
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = values[i * step];
}

// Elements `range` of the patch whose first pixel is (row, column); returns where they end.
template <typename T>
T* Patches::gather_row(const std::byte* image, int64_t row, int64_t column, Range range,
                       T* to) const {
  const int64_t line = kernel_w_ * in_;  // a line of the patch
  const bool whole_lines = scale_ == 1 && column >= 0 && column + kernel_w_ <= x_.size(2) &&
                           x_.stride(2) == in_ * x_.stride(3);
  const int64_t longest = whole_lines ? line : in_;
  for (int64_t k = range.begin; k < range.end;) {
    const int64_t i = row + k / line, j = column + k % line / in_;
    const int64_t count = std::min(longest - k % longest, range.end - k);
    const bool inside = i >= 0 && i < x_.size(1) * scale_ && j >= 0 && j < x_.size(2) * scale_;
    if (inside) {
      const int64_t pixel = i / scale_ * x_.stride(1) + j / scale_ * x_.stride(2);
      copy(image + (pixel + k % in_ * x_.stride(3)) * element_bytes_, count, to);
    } else {
      std::fill_n(to, count, T{});
    }
    to += count;
    k += count;
  }
  return to;
}

}  // namespace rbee::cpu
