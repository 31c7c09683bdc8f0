#pragma once
// Vec: as many floats as an AVX-512 register holds. The same names as in vec_avx2.h.

#include <immintrin.h>

#include <cstdint>

#include "rbee/core/half.h"

#define RB_INLINE inline __attribute__((always_inline))

namespace rbee::cpu {
namespace {

constexpr const char* kIsaName = "avx512";
constexpr int kLanes = 16;
constexpr int kTileRows = 8;  // rows of a register tile that is 32 floats wide

using Vec = __m512;

RB_INLINE Vec splat(float x) {
  return _mm512_set1_ps(x);
}
RB_INLINE Vec load(const float* p) {
  return _mm512_loadu_ps(p);
}
RB_INLINE void store(float* p, Vec x) {
  _mm512_storeu_ps(p, x);
}
// The first n lanes, 0 < n < kLanes; the others are 0 and not touched.
RB_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
RB_INLINE Vec load_first(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
RB_INLINE void store_first(float* p, Vec x, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
RB_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
// Even lanes a * b - c, odd lanes a * b + c.
RB_INLINE Vec fma_sub_add(Vec a, Vec b, Vec c) {
  return _mm512_fmaddsub_ps(a, b, c);
}
// NaN in the second operand wins.
RB_INLINE Vec max(Vec a, Vec b) {
  return _mm512_max_ps(a, b);
}
RB_INLINE Vec min(Vec a, Vec b) {
  return _mm512_min_ps(a, b);
}
// yes where x is below `limit`, else no.
RB_INLINE Vec below(Vec x, float limit, Vec yes, Vec no) {
  return x < splat(limit) ? yes : no;
}
// x where `number` is not below `limit`, or NaN; else 0.
RB_INLINE Vec zero_below(Vec x, Vec number, float limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(number, splat(limit), _CMP_NLT_UQ), x);
}
RB_INLINE Vec round_even(Vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for whole n in [-126, 127].
RB_INLINE Vec power_of_two(Vec n) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
}
RB_INLINE Vec swap_pairs(Vec x) {
  return _mm512_permute_ps(x, 0xB1);
}
// Eight values, each twice in a row.
RB_INLINE Vec load_doubled(const float* p) {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
RB_INLINE float sum(Vec x) {
  return _mm512_reduce_add_ps(x);
}
// Whether a lane is above x, or NaN.
RB_INLINE bool any_above(Vec lanes, float x) {
  return _mm512_cmp_ps_mask(lanes, splat(x), _CMP_NLE_UQ) != 0;
}
RB_INLINE float largest(Vec x) {
  return _mm512_reduce_max_ps(x);
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/vec_half.h"
#include "backends/cpu/simd/vec_math.h"
