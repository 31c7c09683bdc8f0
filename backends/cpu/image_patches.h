#pragma once
// An image as the matrix that a convolution multiplies: row p is the filters' input for output
// pixel p, (kernel_h, kernel_w, channels), 0 outside the image. The matrix is never stored; pieces
// of its rows are gathered when they are multiplied.

#include <cstddef>
#include <cstdint>

#include "backends/api/args_image.h"
#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

class Patches {
 public:
  // `x` has the batch, height and width of args.x: args.x itself, or other data of its pixels with
  // any number of channels, e.g. their scales.
  Patches(const ImageConvArgs& args, const View& x, const FloatRows& rows);

  // Elements of a row.
  int64_t depth() const { return depth_; }

  // Whether row p is pixel p in memory, depth() elements after the pixel before.
  bool plain() const;

  // Elements [k, k + count) of row p, 0 beyond the depth. The float version takes x in f32, f16 or
  // bf16; the others copy the bits of x's elements, which must have the same size.
  void gather(int64_t p, int64_t k, int64_t count, float* to) const;
  void gather(int64_t p, int64_t k, int64_t count, uint16_t* to) const;
  void gather(int64_t p, int64_t k, int64_t count, int8_t* to) const;

 private:
  struct Range {
    int64_t begin, end;
  };

  template <typename T>
  void gather_as(int64_t p, int64_t k, int64_t count, T* out) const;
  template <typename T>
  T* gather_row(const std::byte* image, int64_t row, int64_t column, Range range, T* to) const;
  const std::byte* at(int64_t offset) const;
  void copy(const std::byte* from, int64_t count, float* to) const;
  template <typename T>
  void copy(const std::byte* from, int64_t count, T* to) const;

  const ImageConvArgs& args_;
  const FloatRows& rows_;
  View x_;
  int64_t in_, kernel_w_, depth_, scale_, element_bytes_;
};

}  // namespace rbee::cpu
