#pragma once
// Shared by the CPU's forms of image_conv: weights in panels, rows of channels as floats, and the
// additions to sums before they are written to y.

#include "backends/api/args_image.h"
#include "backends/cpu/linear/kernels.h"

namespace rbee::cpu {

// Null if the instruction set has no kernel for the type, or the type is neither f32, f16, bf16 nor
// q8_0.
const PanelKernels* conv_kernels(const LinearIsa& isa, DType dtype);

// f32, f16 or bf16: `count` elements from `from` on, `step` elements apart, as floats.
void copy_channels(const FloatRows& rows, DType dtype, const std::byte* from, int64_t step,
                   int64_t count, float* to);

// sums += `count` elements of an optional operand along its last axis, the first of them `at`
// elements from its beginning.
void add_channels(const FloatRows& rows, const View& view, int64_t at, int64_t count, float* sums);

// Outputs [first, first + count) of output pixel `pixel` of all images.
struct PixelPart {
  int64_t pixel, first, count;
};

// Writes these outputs' sums, with all additions, to y. Changes `sums`.
void finish_pixel(const ImageConvArgs& args, const LinearIsa& isa, const PixelPart& part,
                  float* sums);

// The weight (out, depth) in panels: itself, or packed for this call into memory of the calling
// thread.
const std::byte* conv_panels(const View& weight);

}  // namespace rbee::cpu
