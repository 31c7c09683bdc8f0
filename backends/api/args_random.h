#pragma once

#include "backends/api/view.h"

namespace rbee {

enum class RandomKind : uint8_t {
  uniform,  // [a, b)
  normal,   // mean a, standard deviation b
};

// Philox4x32-10 (backends/shared/philox.h): words r0..r3 of element i come from counter offset + i
// under key `seed`, so results do not depend on threads or devices.
//   uniform: a + (b - a) * u, u = the top p bits of r0:r1 over 2^p, p = bits of the dtype's
//   mantissa
//     (f64 53, f32 24, f16 11, bf16 8, f8e4m3 4); a where rounding reaches b
//   normal (Box and Muller 1958): a + b * sqrt(-2 ln(u)) * cos(2 pi v),
//     u = ((r0 >> 8) + 1) / 2^24 in (0, 1], v = (r1 >> 8) / 2^24: exact in float
struct RandomArgs {
  RandomKind kind;
  View y;  // any float dtype, contiguous
  uint64_t seed = 0, offset = 0;
  double a = 0, b = 1;
};

}  // namespace rbee
