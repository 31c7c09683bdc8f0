// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

namespace rbee::cpu {
namespace {

// In pairs: neighbours within a quarter of the register, then quarters.
RB_INLINE Vec sums_of(const Vec (&x)[kLanes]) {
  Vec pairs[8], quads[4];
  for (int i = 0; i < 8; ++i) {
    pairs[i] = _mm512_add_ps(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]),
                             _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(pairs[2 * i]), b = _mm512_castps_pd(pairs[2 * i + 1]);
    quads[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  const auto halves = [](Vec a, Vec b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  };
  return halves(halves(quads[0], quads[1]), halves(quads[2], quads[3]));
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/plain_linear_loops.h"

namespace rbee::cpu {

void (*const avx512_dot_products)(const DotProducts&) = dot_products;

}  // namespace rbee::cpu
