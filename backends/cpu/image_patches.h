#pragma once
// An image as the matrix that a convolution multiplies: row p is what the filters of output pixel p
// see, (kernel_h, kernel_w, channels), 0 outside the image. The matrix does not exist; pieces of
// its rows are gathered as they are multiplied.

#include <cstddef>
#include <cstdint>

#include "backends/api/args_image.h"
#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

class Patches {
 public:
  // `x` has the batch, height and width of args.x: args.x itself, or what belongs to its pixels in
  // as many channels as it likes, e.g. their scales.
  Patches(const ImageConvArgs& args, const View& x, const FloatRows& rows);

  // Elements of a row.
  int64_t depth() const { return depth_; }

  // Whether row p is pixel p as it lies in memory, depth() elements after the one before.
  bool plain() const;

  // Elements [k, k + count) of row p, 0 beyond the depth. As floats of x in f32, f16 or bf16; the
  // others copy x's bits, whose elements are as large.
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
