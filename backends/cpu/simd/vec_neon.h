#pragma once
// Vec: eight floats in two NEON registers, since arm64 has twice as many registers as AVX2, of half
// the size: tiles that fill the one's fill the other's. The same names as in vec_avx2.h.

#include <arm_neon.h>

#include <cstdint>

#include "rbee/core/half.h"

#define RB_INLINE inline __attribute__((always_inline))

namespace rbee::cpu {
namespace {

constexpr const char* kIsaName = "neon";
constexpr int kLanes = 8;
constexpr int kTileRows = 3;  // rows of a register tile that is 32 floats wide

// Copied member by member: GCC 12 leaves copies of the whole in memory, within loops too.
struct Vec {
  RB_INLINE Vec() {}
  RB_INLINE Vec(float32x4_t first, float32x4_t second) : low(first), high(second) {}
  RB_INLINE Vec(const Vec& other) : low(other.low), high(other.high) {}
  RB_INLINE Vec& operator=(const Vec& other) {
    low = other.low;
    high = other.high;
    return *this;
  }

  float32x4_t low, high;
};

RB_INLINE Vec splat(float x) {
  return {vdupq_n_f32(x), vdupq_n_f32(x)};
}
RB_INLINE Vec operator+(Vec a, Vec b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
RB_INLINE Vec operator-(Vec a, Vec b) {
  return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
RB_INLINE Vec operator*(Vec a, Vec b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
RB_INLINE Vec operator/(Vec a, Vec b) {
  return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
RB_INLINE Vec operator-(Vec x) {
  return {vnegq_f32(x.low), vnegq_f32(x.high)};
}
RB_INLINE Vec load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4)};
}
RB_INLINE void store(float* p, Vec x) {
  vst1q_f32(p, x.low);
  vst1q_f32(p + 4, x.high);
}
// The first n lanes, 0 < n < kLanes; the others are 0 and not touched.
RB_INLINE Vec load_first(const float* p, int64_t n) {
  float all[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) all[i] = p[i];
  return load(all);
}
RB_INLINE void store_first(float* p, Vec x, int64_t n) {
  float all[kLanes];
  store(all, x);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}
RB_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
RB_INLINE float32x4_t even_negated(float32x4_t x) {
  const uint32x4_t signs = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
  return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(x), signs));
}
// Even lanes a * b - c, odd lanes a * b + c.
RB_INLINE Vec fma_sub_add(Vec a, Vec b, Vec c) {
  return fma(a, b, {even_negated(c.low), even_negated(c.high)});
}
// NaN in the second operand wins, as on x86; vmaxq would take it from both.
RB_INLINE float32x4_t max4(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
RB_INLINE Vec max(Vec a, Vec b) {
  return {max4(a.low, b.low), max4(a.high, b.high)};
}
RB_INLINE Vec min(Vec a, Vec b) {
  return {vbslq_f32(vcltq_f32(a.low, b.low), a.low, b.low),
          vbslq_f32(vcltq_f32(a.high, b.high), a.high, b.high)};
}
// yes where x is below `limit`, else no.
RB_INLINE Vec below(Vec x, float limit, Vec yes, Vec no) {
  const float32x4_t limits = vdupq_n_f32(limit);
  return {vbslq_f32(vcltq_f32(x.low, limits), yes.low, no.low),
          vbslq_f32(vcltq_f32(x.high, limits), yes.high, no.high)};
}
// x where `number` is not below `limit`, or NaN; else 0.
RB_INLINE Vec zero_below(Vec x, Vec number, float limit) {
  return below(number, limit, splat(0.0f), x);
}
RB_INLINE Vec round_even(Vec x) {
  return {vrndnq_f32(x.low), vrndnq_f32(x.high)};
}
RB_INLINE float32x4_t power_of_two4(float32x4_t n) {
  const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
}
// 2^n for whole n in [-126, 127].
RB_INLINE Vec power_of_two(Vec n) {
  return {power_of_two4(n.low), power_of_two4(n.high)};
}
RB_INLINE Vec swap_pairs(Vec x) {
  return {vrev64q_f32(x.low), vrev64q_f32(x.high)};
}
// Four values, each twice in a row.
RB_INLINE Vec load_doubled(const float* p) {
  const float32x4_t x = vld1q_f32(p);
  return {vzip1q_f32(x, x), vzip2q_f32(x, x)};
}
// In the order in which AVX2's adds.
RB_INLINE float sum(Vec x) {
  const float32x4_t four = vaddq_f32(x.low, x.high);
  return vaddv_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}
// Whether a lane is above x, or NaN.
RB_INLINE bool any_above(Vec lanes, float x) {
  const float32x4_t limit = vdupq_n_f32(x);
  const uint32x4_t within = vandq_u32(vcleq_f32(lanes.low, limit), vcleq_f32(lanes.high, limit));
  return vminvq_u32(within) == 0;
}
RB_INLINE float largest(Vec x) {
  const float32x4_t four = max4(x.low, x.high);
  const float32x4_t two = max4(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(max4(two, vdupq_laneq_f32(two, 1)), 0);
}

}  // namespace
}  // namespace rbee::cpu

#include "backends/cpu/simd/vec_half_neon.h"
#include "backends/cpu/simd/vec_math.h"
