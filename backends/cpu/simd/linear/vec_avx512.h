#pragma once
// Vectors of 64 bytes: all rows of a panel, one for each step. The same names as in
// vec_avx2.h, for formats.h and float_kernels.h.

#include <immintrin.h>

#include "backends/cpu/linear/panel.h"

namespace {

namespace panel = rbee::cpu;

using Bytes = __m512i;
using Floats = __m512;

constexpr int kLanes = 16;                          // rows in one vector
constexpr int kParts = panel::kPanelRows / kLanes;  // vectors in one step
constexpr int kRowSums = 1;                         // of float_kernels.h
constexpr int kFloatTile = 12;  // rows of x: independent sums enough for two units

// Part `part` of 16 rows.
[[gnu::always_inline]] inline Bytes load_step(const void* step, int part) {
  return _mm512_loadu_si512(static_cast<const __m512i*>(step) + part);
}
[[gnu::always_inline]] inline void store_step(void* step, int part, Bytes x) {
  _mm512_storeu_si512(static_cast<__m512i*>(step) + part, x);
}
[[gnu::always_inline]] inline Bytes bytes_of(int x) {
  return _mm512_set1_epi8(static_cast<char>(x));
}
[[gnu::always_inline]] inline Bytes words_of(int x) {
  return _mm512_set1_epi16(static_cast<int16_t>(x));
}
[[gnu::always_inline]] inline Bytes both(Bytes a, Bytes b) {
  return _mm512_and_si512(a, b);
}
[[gnu::always_inline]] inline Bytes either(Bytes a, Bytes b) {
  return _mm512_or_si512(a, b);
}
[[gnu::always_inline]] inline Bytes differing(Bytes a, Bytes b) {
  return _mm512_xor_si512(a, b);
}
// Shifts of 16-bit lanes: bits cross between bytes, callers mask them.
[[gnu::always_inline]] inline Bytes shift_right(Bytes x, int bits) {
  return _mm512_srli_epi16(x, bits);
}
[[gnu::always_inline]] inline Bytes shift_left(Bytes x, int bits) {
  return _mm512_slli_epi16(x, bits);
}
// table[index] for indices 0 to 15.
[[gnu::always_inline]] inline Bytes look_up(const unsigned char* table, Bytes index) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(low), index);
}

// Part `part` of one number for each of 16 rows.
[[gnu::always_inline]] inline Floats load_floats(const float* x, int part) {
  return _mm512_loadu_ps(x + kLanes * part);
}
[[gnu::always_inline]] inline void store_floats(float* x, int part, Floats v) {
  _mm512_storeu_ps(x + kLanes * part, v);
}
[[gnu::always_inline]] inline Floats load_halves(const uint16_t* x, int part) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + kLanes * part)));
}
[[gnu::always_inline]] inline Floats load_u8(const uint8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(at)));
}
[[gnu::always_inline]] inline Floats load_i8(const int8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
}
// Low or high nibbles of 16 bytes.
[[gnu::always_inline]] inline Floats load_nibbles(const uint8_t* x, int part, int shift) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(at));
  return _mm512_cvtepi32_ps(
      _mm512_and_si512(_mm512_srli_epi32(wide, shift), _mm512_set1_epi32(15)));
}
// 2^(e - 128) of E8M0 bytes.
[[gnu::always_inline]] inline Floats load_e8m0_halved(const uint8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(at));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  const __mmask16 is_tiny = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(2), e);
  return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_tiny, normal, tiny));
}
[[gnu::always_inline]] inline Floats all(float x) {
  return _mm512_set1_ps(x);
}
[[gnu::always_inline]] inline Floats times(Floats a, Floats b) {
  return _mm512_mul_ps(a, b);
}
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Floats negated(Floats x) {
  return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

[[gnu::always_inline]] inline Floats plus(Floats a, Floats b) {
  return _mm512_add_ps(a, b);
}
// The f16 numbers in the low and the high half of a vector.
[[gnu::always_inline]] inline Floats low_halves(Bytes x) {
  return _mm512_cvtph_ps(_mm512_castsi512_si256(x));
}
[[gnu::always_inline]] inline Floats high_halves(Bytes x) {
  return _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1));
}
// The bf16 numbers in the low and the high halves of 32 bits.
[[gnu::always_inline]] inline Floats low_bf16(Bytes pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
[[gnu::always_inline]] inline Floats high_bf16(Bytes pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)));
}

// Lanes of 32 bits, one for each row.
[[gnu::always_inline]] inline Bytes lanes_of(uint32_t x) {
  return _mm512_set1_epi32(static_cast<int>(x));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint8_t* x, int part) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + kLanes * part)));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint16_t* x, int part) {
  const auto* at = reinterpret_cast<const __m256i*>(x + kLanes * part);
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(at));
}
[[gnu::always_inline]] inline Bytes lanes_right(Bytes x, int bits) {
  return _mm512_srli_epi32(x, static_cast<unsigned>(bits));
}
[[gnu::always_inline]] inline Bytes lanes_left(Bytes x, int bits) {
  return _mm512_slli_epi32(x, static_cast<unsigned>(bits));
}
[[gnu::always_inline]] inline Floats numbers(Bytes lanes) {
  return _mm512_cvtepi32_ps(lanes);
}
[[gnu::always_inline]] inline Floats as_floats(Bytes lanes) {
  return _mm512_castsi512_ps(lanes);
}
// Products of 16-bit lanes.
[[gnu::always_inline]] inline Bytes words_times(Bytes x, int by) {
  return _mm512_mullo_epi16(x, words_of(by));
}
// Byte `byte` of every lane in all of its four.
[[gnu::always_inline]] inline Bytes spread_byte(Bytes x, int byte) {
  const __m512i each = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  return _mm512_shuffle_epi8(x, _mm512_add_epi8(each, bytes_of(byte)));
}
// index, with 8 added to the bytes where `bits` and the lane's `pattern` have a bit in common.
[[gnu::always_inline]] inline Bytes marked(Bytes index, Bytes bits, uint32_t pattern) {
  const __mmask64 where = _mm512_test_epi8_mask(bits, lanes_of(pattern));
  return _mm512_mask_add_epi8(index, where, index, bytes_of(8));
}
// table[index] of 16-bit lanes: each two vectors of the table in one instruction, then one bit of
// the index after another chooses.
template <int kCount>
[[gnu::always_inline]] inline Bytes look_up_words(const uint16_t* table, Bytes index) {
  if constexpr (kCount == 64) {
    return _mm512_permutex2var_epi16(_mm512_loadu_si512(table), index,
                                     _mm512_loadu_si512(table + 32));
  } else {
    constexpr int kHalf = kCount / 2;
    const Bytes low = look_up_words<kHalf>(table, index);
    const Bytes high = look_up_words<kHalf>(table + kHalf, index);
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(index, words_of(kHalf)), low, high);
  }
}
// As in vec_avx2.h; permutes of fewer points take less.
constexpr int kSpreadFrom = 2048;

[[gnu::always_inline]] inline __m128i two_rows(const uint64_t* book, int64_t pair, int half) {
  const auto index = static_cast<uint64_t>(pair) >> (16 * half);
  const auto* low = reinterpret_cast<const __m128i*>(book + (index & 0xffff));
  const auto* high = reinterpret_cast<const double*>(book + (index >> 32 & 0xffff));
  return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64(low)), high));
}
// out with rows kFirst, kFirst + 1 of four in quarter kQuarter.
template <int kQuarter, int kFirst>
[[gnu::always_inline]] inline __m512i with_two_rows(__m512i out, const uint64_t* book, Bytes index,
                                                    int half) {
  const __m128i four = _mm512_extracti32x4_epi32(index, kQuarter);
  const __m128i two = two_rows(book, _mm_extract_epi64(four, kFirst / 2), half);
  return _mm512_inserti32x4(out, two, kQuarter);
}
template <int kFirst>
[[gnu::always_inline]] inline __m512 each_two_rows(const uint64_t* book, Bytes index, int half) {
  __m512i out = with_two_rows<0, kFirst>(_mm512_setzero_si512(), book, index, half);
  out = with_two_rows<1, kFirst>(out, book, index, half);
  out = with_two_rows<2, kFirst>(out, book, index, half);
  return _mm512_castsi512_ps(with_two_rows<3, kFirst>(out, book, index, half));
}
[[gnu::always_inline]] inline Bytes spread_digits(const uint64_t* book, Bytes index, int half,
                                                  int four) {
  const __m512 a = each_two_rows<0>(book, index, half), b = each_two_rows<2>(book, index, half);
  return _mm512_castps_si512(four != 0 ? _mm512_shuffle_ps(a, b, 0xdd)
                                       : _mm512_shuffle_ps(a, b, 0x88));
}
// code_book_formats.h names it, but nothing calls it.
template <typename Point>
Bytes spread_digits(const Point* book, Bytes index, int half);

}  // namespace
