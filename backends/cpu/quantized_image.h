#pragma once
// Images in the form that kernels of block types read: each pixel's channels as signed bytes in
// groups of 32, rounded like a linear layer's x (linear/kernels.h).

#include "backends/api/view.h"
#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/scratch.h"

namespace rbee::cpu {

// x[n, i, j, c] ~ scale[n, i, j, c / 32] * q[n, i, j, c]
struct QuantizedImage {
  View q;      // (batch, height, width, in), signed bytes as u8
  View scale;  // (batch, height, width, in / 32), f32
  View sum32;  // the same: scale * sum of the group's q
};

// x: (batch, height, width, in) f32, f16 or bf16, any strides, `in` a multiple of 32. Uses all
// threads; the result is in `scratch`.
QuantizedImage quantize_image(const View& x, const LinearIsa& isa, Scratch& scratch);

}  // namespace rbee::cpu
