#pragma once
// Eight elements of a storage type as floats and back, and what else takes eight floats; both
// instruction sets have these. Included by vec_avx2.h and vec_avx512.h.

namespace rbee::cpu {
namespace {

using Vec8 = __m256;

RB_INLINE Vec8 splat8(float x) {
  return _mm256_set1_ps(x);
}
RB_INLINE Vec8 load8(const float* p) {
  return _mm256_loadu_ps(p);
}
RB_INLINE Vec8 load8(const f16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
RB_INLINE Vec8 load8(const bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
// As a float's bits the value is 2^-120 of itself, the exponent's bias being 7; subnormals too.
RB_INLINE Vec8 load8(const f8e4m3* p) {
  const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x80)), 24);
  const __m256i size = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f));
  const __m256 scaled =
      _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(size, 20)), _mm256_set1_ps(0x1p120f));
  const __m256i nan = _mm256_cmpeq_epi32(size, _mm256_set1_epi32(0x7f));
  const __m256i quiet = _mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000));
  const __m256i out = _mm256_or_si256(_mm256_castps_si256(scaled), quiet);
  return _mm256_castsi256_ps(_mm256_or_si256(out, sign));
}
// Eight signed bytes.
RB_INLINE Vec8 load8(const int8_t* p) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
}
RB_INLINE float load1(const float* p) {
  return *p;
}
RB_INLINE float load1(const f16* p) {
  return _cvtsh_ss(p->bits);
}
RB_INLINE float load1(const bf16* p) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(p->bits) << 16);
}
RB_INLINE float load1(const f8e4m3* p) {
  const float scaled =
      __builtin_bit_cast(float, static_cast<uint32_t>(p->bits & 0x7f) << 20) * 0x1p120f;
  const uint32_t quiet = (p->bits & 0x7f) == 0x7f ? 0x7fc00000u : 0;
  const uint32_t sign = static_cast<uint32_t>(p->bits & 0x80) << 24;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | quiet | sign);
}
// A number of f16, and the nearest one, ties to even.
RB_INLINE float half_value(uint16_t bits) {
  return _cvtsh_ss(bits);
}
RB_INLINE uint16_t half_bits(float x) {
  return static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

RB_INLINE void store8(float* p, Vec8 x) {
  _mm256_storeu_ps(p, x);
}
RB_INLINE void store8(f16* p, Vec8 x) {
  const __m128i bits = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bits);
}
// Rounds to nearest even; NaN stays NaN.
RB_INLINE void store8(bf16* p, Vec8 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i out = _mm256_blendv_epi8(rounded, quiet, nan);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}
// Rounds to nearest even and saturates at 448; NaN stays NaN. Adding 2^14 to a number below 2^-6
// leaves its mantissa in units of 2^-9, rounded.
RB_INLINE void store8(f8e4m3* p, Vec8 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i size = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(size, 20), _mm256_set1_epi32(1));
  const __m256i rebased = _mm256_sub_epi32(size, _mm256_set1_epi32(0x3c000000 - 0x7ffff));
  const __m256i normal = _mm256_srli_epi32(_mm256_add_epi32(rebased, odd), 20);
  const __m256 aligned = _mm256_add_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(0x1p14f));
  const __m256i small =
      _mm256_sub_epi32(_mm256_castps_si256(aligned), _mm256_set1_epi32(0x46800000));
  const auto choose = [](__m256i no, __m256i yes, __m256i mask) {
    return _mm256_blendv_epi8(no, yes, mask);
  };
  const auto above = [&](int limit) { return _mm256_cmpgt_epi32(size, _mm256_set1_epi32(limit)); };
  __m256i out = choose(small, normal, above(0x3c7fffff));
  out = choose(out, _mm256_set1_epi32(0x7e), above(0x43e7ffff));  // 464 and more
  out = choose(out, _mm256_set1_epi32(0x7f), above(0x7f800000));
  out =
      _mm256_or_si256(out, _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80)));
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
// The first n < 8 elements.
template <typename T>
RB_INLINE void store_first8(T* p, Vec8 x, int64_t n) {
  T all[8];
  store8(all, x);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}

// Lane j: the sum of x[j]'s lanes.
RB_INLINE Vec8 add_up8(const Vec8 x[8]) {
  const __m256 first = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
  const __m256 second = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(first, second, 0x20),
                       _mm256_permute2f128_ps(first, second, 0x31));
}
RB_INLINE void transpose8(Vec8 row[8]) {
  __m256 pair[8], quad[8];
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
    pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    quad[4 * i] = _mm256_shuffle_ps(pair[4 * i], pair[4 * i + 2], 0x44);
    quad[4 * i + 1] = _mm256_shuffle_ps(pair[4 * i], pair[4 * i + 2], 0xEE);
    quad[4 * i + 2] = _mm256_shuffle_ps(pair[4 * i + 1], pair[4 * i + 3], 0x44);
    quad[4 * i + 3] = _mm256_shuffle_ps(pair[4 * i + 1], pair[4 * i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20);
    row[i + 4] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31);
  }
}

// The largest magnitude of 32 numbers as bits, which sort like magnitudes, with NaN above infinity.
RB_INLINE uint32_t largest_magnitude(const Vec8 x[4]) {
  __m256i most = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x[i]);
    most = _mm256_max_epi32(most, _mm256_castps_si256(magnitude));
  }
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}
// 32 numbers times `factor`, rounded and kept within 127; of NaN 127.
RB_INLINE void store_codes(uint8_t* to, const Vec8 x[4], float factor) {
  const __m256 factors = _mm256_set1_ps(factor);
  __m256i steps[4];
  for (int i = 0; i < 4; ++i) {
    // min_ps gives its second operand where the first is NaN.
    __m256 within = _mm256_min_ps(_mm256_mul_ps(x[i], factors), _mm256_set1_ps(127.0f));
    within = _mm256_max_ps(within, _mm256_set1_ps(-127.0f));
    steps[i] = _mm256_cvtps_epi32(within);
  }
  // Packing works on 128-bit halves: words 0 4 1 5 2 6 3 7 are then in order.
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(steps[0], steps[1]),
                                           _mm256_packs_epi32(steps[2], steps[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
}

}  // namespace
}  // namespace rbee::cpu
