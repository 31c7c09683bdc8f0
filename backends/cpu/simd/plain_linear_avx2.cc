// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx2.h"

namespace rbee::cpu {
namespace {

// In pairs: neighbours within a half of the register, then halves.
RB_INLINE Vec sums_of(const Vec (&x)[kLanes]) {
  const Vec low = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
  const Vec high = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                       _mm256_permute2f128_ps(low, high, 0x31));
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/plain_linear_loops.h"

namespace rbee::cpu {

void (*const avx2_dot_products)(const DotProducts&) = dot_products;

}  // namespace rbee::cpu
