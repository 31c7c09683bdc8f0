#pragma once
// Eight elements of a storage type as floats and back, and what else takes eight floats. Included
// by vec_neon.h; the same names as in vec_half.h.

namespace rbee::cpu {
namespace {

using Vec8 = Vec;

RB_INLINE Vec8 splat8(float x) {
  return splat(x);
}
RB_INLINE Vec8 load8(const float* p) {
  return load(p);
}
RB_INLINE Vec8 load8(const f16* p) {
  const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(&p->bits));
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}
RB_INLINE Vec8 load8(const bf16* p) {
  const uint16x8_t bits = vld1q_u16(&p->bits);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(bits, 16))};
}
// As a float's bits the value is 2^-120 of itself, the exponent's bias being 7; subnormals too.
RB_INLINE float32x4_t e4m3_values(uint32x4_t bits) {
  const uint32x4_t sign = vshlq_n_u32(vandq_u32(bits, vdupq_n_u32(0x80)), 24);
  const uint32x4_t size = vandq_u32(bits, vdupq_n_u32(0x7f));
  const float32x4_t scaled = vmulq_n_f32(vreinterpretq_f32_u32(vshlq_n_u32(size, 20)), 0x1p120f);
  const uint32x4_t nan = vceqq_u32(size, vdupq_n_u32(0x7f));
  const uint32x4_t quiet = vandq_u32(nan, vdupq_n_u32(0x7fc00000));
  return vreinterpretq_f32_u32(vorrq_u32(vorrq_u32(vreinterpretq_u32_f32(scaled), quiet), sign));
}
RB_INLINE Vec8 load8(const f8e4m3* p) {
  const uint16x8_t words = vmovl_u8(vld1_u8(&p->bits));
  return {e4m3_values(vmovl_u16(vget_low_u16(words))), e4m3_values(vmovl_high_u16(words))};
}
// Eight signed bytes.
RB_INLINE Vec8 load8(const int8_t* p) {
  const int16x8_t words = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))};
}
// A number of f16, and the nearest one, ties to even.
RB_INLINE float half_value(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(__fp16, bits));
}
RB_INLINE uint16_t half_bits(float x) {
  return __builtin_bit_cast(uint16_t, static_cast<__fp16>(x));
}
RB_INLINE float load1(const float* p) {
  return *p;
}
RB_INLINE float load1(const f16* p) {
  return half_value(p->bits);
}
RB_INLINE float load1(const bf16* p) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(p->bits) << 16);
}
RB_INLINE float load1(const f8e4m3* p) {
  return vgetq_lane_f32(e4m3_values(vdupq_n_u32(p->bits)), 0);
}

RB_INLINE void store8(float* p, Vec8 x) {
  store(p, x);
}
RB_INLINE void store8(f16* p, Vec8 x) {
  const float16x8_t halves = vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high);
  vst1q_u16(&p->bits, vreinterpretq_u16_f16(halves));
}
// Rounds to nearest even; NaN stays NaN. The result is in the upper halves.
RB_INLINE uint32x4_t bf16_of(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vbslq_u32(vceqq_f32(x, x), rounded, quiet);
}
RB_INLINE void store8(bf16* p, Vec8 x) {
  vst1q_u16(&p->bits, vshrn_high_n_u32(vshrn_n_u32(bf16_of(x.low), 16), bf16_of(x.high), 16));
}
// Rounds to nearest even and saturates at 448; NaN stays NaN. Adding 2^14 to a number below 2^-6
// leaves its mantissa in units of 2^-9, rounded.
RB_INLINE uint32x4_t e4m3_of(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t size = vandq_u32(bits, vdupq_n_u32(0x7fffffff));
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(size, 20), vdupq_n_u32(1));
  const uint32x4_t rebased = vsubq_u32(size, vdupq_n_u32(0x3c000000 - 0x7ffff));
  const uint32x4_t normal = vshrq_n_u32(vaddq_u32(rebased, odd), 20);
  const float32x4_t aligned = vaddq_f32(vreinterpretq_f32_u32(size), vdupq_n_f32(0x1p14f));
  const uint32x4_t small = vsubq_u32(vreinterpretq_u32_f32(aligned), vdupq_n_u32(0x46800000));
  const auto above = [&](uint32_t limit) { return vcgtq_u32(size, vdupq_n_u32(limit)); };
  uint32x4_t out = vbslq_u32(above(0x3c7fffff), normal, small);
  out = vbslq_u32(above(0x43e7ffff), vdupq_n_u32(0x7e), out);  // 464 and more
  out = vbslq_u32(above(0x7f800000), vdupq_n_u32(0x7f), out);
  return vorrq_u32(out, vandq_u32(vshrq_n_u32(bits, 24), vdupq_n_u32(0x80)));
}
RB_INLINE void store8(f8e4m3* p, Vec8 x) {
  const uint16x8_t words = vmovn_high_u32(vmovn_u32(e4m3_of(x.low)), e4m3_of(x.high));
  vst1_u8(&p->bits, vmovn_u16(words));
}
// The first n < 8 elements.
template <typename T>
RB_INLINE void store_first8(T* p, Vec8 x, int64_t n) {
  T all[8];
  store8(all, x);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}

// Lane j: the sum of x[j]'s lanes. In pairs: neighbours within each half, then halves, as with
// AVX2.
RB_INLINE Vec8 add_up8(const Vec8 x[8]) {
  const auto four = [x](int first) {
    const Vec a = x[first], b = x[first + 1], c = x[first + 2], d = x[first + 3];
    const float32x4_t low = vpaddq_f32(vpaddq_f32(a.low, b.low), vpaddq_f32(c.low, d.low));
    const float32x4_t high = vpaddq_f32(vpaddq_f32(a.high, b.high), vpaddq_f32(c.high, d.high));
    return vaddq_f32(low, high);
  };
  return {four(0), four(4)};
}
RB_INLINE void transpose4(float32x4_t (&row)[4]) {
  const float32x4_t a = vtrn1q_f32(row[0], row[1]), b = vtrn2q_f32(row[0], row[1]);
  const float32x4_t c = vtrn1q_f32(row[2], row[3]), d = vtrn2q_f32(row[2], row[3]);
  const auto pairs = [](float32x4_t x) { return vreinterpretq_f64_f32(x); };
  row[0] = vreinterpretq_f32_f64(vtrn1q_f64(pairs(a), pairs(c)));
  row[1] = vreinterpretq_f32_f64(vtrn1q_f64(pairs(b), pairs(d)));
  row[2] = vreinterpretq_f32_f64(vtrn2q_f64(pairs(a), pairs(c)));
  row[3] = vreinterpretq_f32_f64(vtrn2q_f64(pairs(b), pairs(d)));
}
RB_INLINE void transpose8(Vec8 row[8]) {
  float32x4_t part[2][2][4];  // [rows][columns]
  for (int i = 0; i < 4; ++i) {
    part[0][0][i] = row[i].low;
    part[0][1][i] = row[i].high;
    part[1][0][i] = row[4 + i].low;
    part[1][1][i] = row[4 + i].high;
  }
  transpose4(part[0][0]);
  transpose4(part[0][1]);
  transpose4(part[1][0]);
  transpose4(part[1][1]);
  for (int i = 0; i < 4; ++i) {
    row[i] = {part[0][0][i], part[1][0][i]};
    row[4 + i] = {part[0][1][i], part[1][1][i]};
  }
}

// The largest magnitude of 32 numbers as bits, which sort like magnitudes, with NaN above infinity.
RB_INLINE uint32_t largest_magnitude(const Vec8 x[4]) {
  uint32x4_t most = vdupq_n_u32(0);
  for (int i = 0; i < 4; ++i) {
    most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(x[i].low)));
    most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(x[i].high)));
  }
  return vmaxvq_u32(most);
}
// 32 numbers times `factor`, rounded and kept within 127; of NaN 127.
RB_INLINE void store_codes(uint8_t* to, const Vec8 x[4], float factor) {
  for (int i = 0; i < 4; ++i) {
    const Vec within = max(min(x[i] * splat(factor), splat(127.0f)), splat(-127.0f));
    const int16x4_t low = vqmovn_s32(vcvtnq_s32_f32(within.low));
    const int16x8_t words = vqmovn_high_s32(low, vcvtnq_s32_f32(within.high));
    vst1_u8(to + 8 * i, vreinterpret_u8_s8(vqmovn_s16(words)));
  }
}

}  // namespace
}  // namespace rbee::cpu
