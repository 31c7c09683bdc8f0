// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_neon.h"

namespace rbee::cpu {
namespace {

RB_INLINE Vec sums_of(const Vec (&x)[kLanes]) {
  return add_up8(x);
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/plain_linear_loops.h"

namespace rbee::cpu {

void (*const neon_dot_products)(const DotProducts&) = dot_products;

}  // namespace rbee::cpu
