#pragma once
// Loops over f32, f16 and bf16 elements that compute in f32. Included after a vec header.

#include "rbee/core/dtype.h"

namespace rbee::cpu {
namespace {

RB_INLINE bool is_storage(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// body.operator()<T>() for the type's elements; only for those above.
template <typename Body>
RB_INLINE void with_storage(DType dtype, const Body& body) {
  if (dtype == DType::f16) return body.template operator()<f16>();
  if (dtype == DType::bf16) return body.template operator()<bf16>();
  body.template operator()<float>();
}

#ifdef __AVX512BF16__
// One instruction; numbers below the smallest normal one become 0.
RB_INLINE void store(bf16* p, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(x)));
}
#endif

// Elements of 16 bits, as the vec header's functions of these names; load1() is in vec_half.h.
#ifdef __AVX512F__
template <typename T>
RB_INLINE Vec load(const T* p) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(load8(p)), load8(p + 8), 1);
}
template <typename T>
RB_INLINE void store(T* p, Vec x) {
  store8(p, _mm512_castps512_ps256(x));
  store8(p + 8, _mm512_extractf32x8_ps(x, 1));
}
#else
template <typename T>
RB_INLINE Vec load(const T* p) {
  return load8(p);
}
template <typename T>
RB_INLINE void store(T* p, Vec x) {
  store8(p, x);
}
#endif
template <typename T>
RB_INLINE Vec load_first(const T* p, int64_t n) {
  T all[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) all[i] = p[i];
  return load(all);
}
template <typename T>
RB_INLINE void store_first(T* p, Vec x, int64_t n) {
  T all[kLanes];
  store(all, x);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}
RB_INLINE void store1(float* p, float x) {
  *p = x;
}
template <typename T>
RB_INLINE void store1(T* p, float x) {
  store_first8(p, splat8(x), 1);
}

}  // namespace
}  // namespace rbee::cpu
