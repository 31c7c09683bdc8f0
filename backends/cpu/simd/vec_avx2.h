#pragma once
// Vec: as many floats as an AVX2 register holds. The same names as in vec_avx512.h, so that a loop
// written once becomes both. Operators + - * / are the compiler's own on vector types.

#include <immintrin.h>

#include <cstdint>

#include "rbee/core/half.h"

#define RB_INLINE inline __attribute__((always_inline))

namespace rbee::cpu {
namespace {

constexpr const char* kIsaName = "avx2";
constexpr int kLanes = 8;
constexpr int kTileRows = 3;  // rows of a register tile that is 32 floats wide

using Vec = __m256;
using IntVec = __m256i;

RB_INLINE Vec splat(float x) {
  return _mm256_set1_ps(x);
}
RB_INLINE Vec load(const float* p) {
  return _mm256_loadu_ps(p);
}
RB_INLINE void store(float* p, Vec x) {
  _mm256_storeu_ps(p, x);
}
// The first n lanes, 0 < n < kLanes; the others are 0 and not touched.
RB_INLINE IntVec first_lanes(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
RB_INLINE Vec load_first(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
RB_INLINE void store_first(float* p, Vec x, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x);
}
RB_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
// Even lanes a * b - c, odd lanes a * b + c.
RB_INLINE Vec fma_sub_add(Vec a, Vec b, Vec c) {
  return _mm256_fmaddsub_ps(a, b, c);
}
// NaN in the second operand wins.
RB_INLINE Vec max(Vec a, Vec b) {
  return _mm256_max_ps(a, b);
}
RB_INLINE Vec min(Vec a, Vec b) {
  return _mm256_min_ps(a, b);
}
// yes where x is below `limit`, else no.
RB_INLINE Vec below(Vec x, float limit, Vec yes, Vec no) {
  return x < splat(limit) ? yes : no;
}
// x where `number` is not below `limit`, or NaN; else 0.
RB_INLINE Vec zero_below(Vec x, Vec number, float limit) {
  return _mm256_and_ps(x, _mm256_cmp_ps(number, splat(limit), _CMP_NLT_UQ));
}
RB_INLINE Vec round_even(Vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for whole n in [-126, 127].
RB_INLINE Vec power_of_two(Vec n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
RB_INLINE Vec swap_pairs(Vec x) {
  return _mm256_permute_ps(x, 0xB1);
}
// Four values, each twice in a row.
RB_INLINE Vec load_doubled(const float* p) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), twice);
}
RB_INLINE float sum(Vec x) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
// Whether a lane is above x, or NaN.
RB_INLINE bool any_above(Vec lanes, float x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(lanes, splat(x), _CMP_NLE_UQ)) != 0;
}
RB_INLINE float largest(Vec x) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/vec_half.h"
#include "backends/cpu/simd/vec_math.h"
