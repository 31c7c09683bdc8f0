#pragma once
// Vectors of 16 bytes: four rows of a panel, so four for each step. The same names as in
// vec_avx2.h, for formats.h and float_kernels.h.

#include <arm_neon.h>

#include "backends/cpu/linear/panel.h"

namespace {

namespace panel = rbee::cpu;

using Bytes = uint8x16_t;
using Floats = float32x4_t;

constexpr int kLanes = 4;                           // rows in one vector
constexpr int kParts = panel::kPanelRows / kLanes;  // vectors in one step
constexpr int kRowSums = 2;                         // of float_kernels.h
constexpr int kFloatTile = 6;  // rows of x: 24 sums, four weights and an input in registers

// 16-bit and 32-bit lanes of a vector.
[[gnu::always_inline]] inline uint16x8_t words_in(Bytes x) {
  return vreinterpretq_u16_u8(x);
}
[[gnu::always_inline]] inline uint32x4_t lanes_in(Bytes x) {
  return vreinterpretq_u32_u8(x);
}
[[gnu::always_inline]] inline Bytes bytes_in(uint16x8_t x) {
  return vreinterpretq_u8_u16(x);
}
[[gnu::always_inline]] inline Bytes bytes_in(uint32x4_t x) {
  return vreinterpretq_u8_u32(x);
}

// Part `part` of 16 rows.
[[gnu::always_inline]] inline Bytes load_step(const void* step, int part) {
  return vld1q_u8(static_cast<const uint8_t*>(step) + 16 * part);
}
[[gnu::always_inline]] inline void store_step(void* step, int part, Bytes x) {
  vst1q_u8(static_cast<uint8_t*>(step) + 16 * part, x);
}
[[gnu::always_inline]] inline Bytes bytes_of(int x) {
  return vdupq_n_u8(static_cast<uint8_t>(x));
}
[[gnu::always_inline]] inline Bytes words_of(int x) {
  return bytes_in(vdupq_n_u16(static_cast<uint16_t>(x)));
}
[[gnu::always_inline]] inline Bytes both(Bytes a, Bytes b) {
  return vandq_u8(a, b);
}
[[gnu::always_inline]] inline Bytes either(Bytes a, Bytes b) {
  return vorrq_u8(a, b);
}
[[gnu::always_inline]] inline Bytes differing(Bytes a, Bytes b) {
  return veorq_u8(a, b);
}
// Shifts of 16-bit lanes: bits cross between bytes, callers mask them. On vectors, the compiler's
// own operators take any count and become one instruction with a constant one.
[[gnu::always_inline]] inline Bytes shift_right(Bytes x, int bits) {
  return bytes_in(words_in(x) >> static_cast<uint16_t>(bits));
}
[[gnu::always_inline]] inline Bytes shift_left(Bytes x, int bits) {
  return bytes_in(words_in(x) << static_cast<uint16_t>(bits));
}
// table[index] for indices 0 to 15.
[[gnu::always_inline]] inline Bytes look_up(const unsigned char* table, Bytes index) {
  return vqtbl1q_u8(vld1q_u8(table), index);
}

// Part `part` of one number for each of 16 rows.
[[gnu::always_inline]] inline Floats load_floats(const float* x, int part) {
  return vld1q_f32(x + kLanes * part);
}
[[gnu::always_inline]] inline void store_floats(float* x, int part, Floats v) {
  vst1q_f32(x + kLanes * part, v);
}
[[gnu::always_inline]] inline Floats load_halves(const uint16_t* x, int part) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + kLanes * part)));
}
// Four bytes as lanes of 32 bits.
[[gnu::always_inline]] inline uint32x4_t four_bytes(const uint8_t* x) {
  uint32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vmovl_u16(vget_low_u16(words));
}
[[gnu::always_inline]] inline Floats load_u8(const uint8_t* x, int part) {
  return vcvtq_f32_u32(four_bytes(x + kLanes * part));
}
[[gnu::always_inline]] inline Floats load_i8(const int8_t* x, int part) {
  int32_t four;
  __builtin_memcpy(&four, x + kLanes * part, sizeof(four));
  const int16x8_t words = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
}
// Low or high nibbles of 16 bytes.
[[gnu::always_inline]] inline Floats load_nibbles(const uint8_t* x, int part, int shift) {
  const uint32x4_t bytes = four_bytes(x + kLanes * part);
  return vcvtq_f32_u32(vandq_u32(bytes >> static_cast<uint32_t>(shift), vdupq_n_u32(15)));
}
// 2^(e - 128) of E8M0 bytes.
[[gnu::always_inline]] inline Floats load_e8m0_halved(const uint8_t* x, int part) {
  const uint32x4_t e = four_bytes(x + kLanes * part);
  const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
  const uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(e));
  return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), tiny, normal));
}
[[gnu::always_inline]] inline Floats all(float x) {
  return vdupq_n_f32(x);
}
[[gnu::always_inline]] inline Floats times(Floats a, Floats b) {
  return vmulq_f32(a, b);
}
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return vfmaq_f32(c, a, b);
}
[[gnu::always_inline]] inline Floats negated(Floats x) {
  return vnegq_f32(x);
}
[[gnu::always_inline]] inline Floats plus(Floats a, Floats b) {
  return vaddq_f32(a, b);
}
// The f16 numbers in the low and the high half of a vector.
[[gnu::always_inline]] inline Floats low_halves(Bytes x) {
  return vcvt_f32_f16(vget_low_f16(vreinterpretq_f16_u8(x)));
}
[[gnu::always_inline]] inline Floats high_halves(Bytes x) {
  return vcvt_high_f32_f16(vreinterpretq_f16_u8(x));
}
// The bf16 numbers in the low and the high halves of 32 bits.
[[gnu::always_inline]] inline Floats low_bf16(Bytes pairs) {
  return vreinterpretq_f32_u32(vshlq_n_u32(lanes_in(pairs), 16));
}
[[gnu::always_inline]] inline Floats high_bf16(Bytes pairs) {
  return vreinterpretq_f32_u32(vandq_u32(lanes_in(pairs), vdupq_n_u32(0xffff0000u)));
}

// Lanes of 32 bits, one for each row.
[[gnu::always_inline]] inline Bytes lanes_of(uint32_t x) {
  return bytes_in(vdupq_n_u32(x));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint8_t* x, int part) {
  return bytes_in(four_bytes(x + kLanes * part));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint16_t* x, int part) {
  return bytes_in(vmovl_u16(vld1_u16(x + kLanes * part)));
}
[[gnu::always_inline]] inline Bytes lanes_right(Bytes x, int bits) {
  return bytes_in(lanes_in(x) >> static_cast<uint32_t>(bits));
}
[[gnu::always_inline]] inline Bytes lanes_left(Bytes x, int bits) {
  return bytes_in(lanes_in(x) << static_cast<uint32_t>(bits));
}
[[gnu::always_inline]] inline Floats numbers(Bytes lanes) {
  return vcvtq_f32_s32(vreinterpretq_s32_u8(lanes));
}
[[gnu::always_inline]] inline Floats as_floats(Bytes lanes) {
  return vreinterpretq_f32_u8(lanes);
}
// Products of 16-bit lanes.
[[gnu::always_inline]] inline Bytes words_times(Bytes x, int by) {
  return bytes_in(vmulq_n_u16(words_in(x), static_cast<uint16_t>(by)));
}
// Byte `byte` of every lane in all of its four.
[[gnu::always_inline]] inline Bytes spread_byte(Bytes x, int byte) {
  const uint32x4_t each = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
  return vqtbl1q_u8(x, vaddq_u8(bytes_in(each), bytes_of(byte)));
}
// index, with 8 added to the bytes where `bits` have the bit of the lane's `pattern`.
[[gnu::always_inline]] inline Bytes marked(Bytes index, Bytes bits, uint32_t pattern) {
  return either(index, both(vtstq_u8(bits, lanes_of(pattern)), bytes_of(8)));
}
// code_book_formats.h names it, but nothing calls it.
template <int kCount>
Bytes look_up_words(const uint16_t* table, Bytes index);

// As with AVX2: books of so many points are read with digits in bytes.
constexpr int kSpreadFrom = 0;

// Words 0 and 2, or 1 and 3, of the points of two rows each.
[[gnu::always_inline]] inline Bytes of_each_row(uint32x4_t first, uint32x4_t second, bool odd) {
  return bytes_in(odd ? vuzp2q_u32(first, second) : vuzp1q_u32(first, second));
}
[[gnu::always_inline]] inline Bytes spread_digits(const uint64_t* book, Bytes index, int half,
                                                  int four) {
  const uint64x2_t pairs = vreinterpretq_u64_u8(index);
  const auto two_rows = [&](uint64_t pair) {
    const uint64_t at = pair >> (16 * half);
    const uint64x1_t low = vld1_u64(book + (at & 0xffff));
    const uint64x1_t high = vld1_u64(book + (at >> 32 & 0xffff));
    return vreinterpretq_u32_u64(vcombine_u64(low, high));
  };
  return of_each_row(two_rows(vgetq_lane_u64(pairs, 0)), two_rows(vgetq_lane_u64(pairs, 1)),
                     four != 0);
}
[[gnu::always_inline]] inline Bytes spread_digits(const uint32_t* book, Bytes index, int half) {
  const uint64x2_t pairs = vreinterpretq_u64_u8(index);
  const auto two_rows = [&](uint64_t pair) {
    const auto point = [&](int i) { return book[pair >> (16 * i) & 0xffff]; };
    const uint32x4_t points = {point(0), point(1), point(2), point(3)};
    return points;
  };
  return of_each_row(two_rows(vgetq_lane_u64(pairs, 0)), two_rows(vgetq_lane_u64(pairs, 1)),
                     half != 0);
}

}  // namespace
