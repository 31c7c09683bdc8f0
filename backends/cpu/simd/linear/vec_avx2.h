#pragma once
// Vectors of 32 bytes: eight rows of a panel, so two for each step. The same names as in
// vec_avx512.h, for formats.h and float_kernels.h.

#include <immintrin.h>

#include "backends/cpu/linear/panel.h"

namespace {

namespace panel = rbee::cpu;

using Bytes = __m256i;
using Floats = __m256;

constexpr int kLanes = 8;                           // rows in one vector
constexpr int kParts = panel::kPanelRows / kLanes;  // vectors in one step
constexpr int kRowSums = 2;                         // of float_kernels.h
constexpr int kFloatTile = 6;  // rows of x: twelve sums, two weights and an input in registers

// Part `part` of 16 rows.
[[gnu::always_inline]] inline Bytes load_step(const void* step, int part) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(step) + part);
}
[[gnu::always_inline]] inline void store_step(void* step, int part, Bytes x) {
  _mm256_storeu_si256(static_cast<__m256i*>(step) + part, x);
}
[[gnu::always_inline]] inline Bytes bytes_of(int x) {
  return _mm256_set1_epi8(static_cast<char>(x));
}
[[gnu::always_inline]] inline Bytes words_of(int x) {
  return _mm256_set1_epi16(static_cast<int16_t>(x));
}
[[gnu::always_inline]] inline Bytes both(Bytes a, Bytes b) {
  return _mm256_and_si256(a, b);
}
[[gnu::always_inline]] inline Bytes either(Bytes a, Bytes b) {
  return _mm256_or_si256(a, b);
}
[[gnu::always_inline]] inline Bytes differing(Bytes a, Bytes b) {
  return _mm256_xor_si256(a, b);
}
// Shifts of 16-bit lanes: bits cross between bytes, callers mask them.
[[gnu::always_inline]] inline Bytes shift_right(Bytes x, int bits) {
  return _mm256_srli_epi16(x, bits);
}
[[gnu::always_inline]] inline Bytes shift_left(Bytes x, int bits) {
  return _mm256_slli_epi16(x, bits);
}
// table[index] for indices 0 to 15.
[[gnu::always_inline]] inline Bytes look_up(const unsigned char* table, Bytes index) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(low), index);
}

// Part `part` of one number for each of 16 rows.
[[gnu::always_inline]] inline Floats load_floats(const float* x, int part) {
  return _mm256_loadu_ps(x + kLanes * part);
}
[[gnu::always_inline]] inline void store_floats(float* x, int part, Floats v) {
  _mm256_storeu_ps(x + kLanes * part, v);
}
[[gnu::always_inline]] inline Floats load_halves(const uint16_t* x, int part) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + kLanes * part)));
}
[[gnu::always_inline]] inline Floats load_u8(const uint8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at)));
}
[[gnu::always_inline]] inline Floats load_i8(const int8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)));
}
// Low or high nibbles of 16 bytes.
[[gnu::always_inline]] inline Floats load_nibbles(const uint8_t* x, int part, int shift) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at));
  return _mm256_cvtepi32_ps(
      _mm256_and_si256(_mm256_srli_epi32(wide, shift), _mm256_set1_epi32(15)));
}
// 2^(e - 128) of E8M0 bytes.
[[gnu::always_inline]] inline Floats load_e8m0_halved(const uint8_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at));
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  const __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, is_tiny));
}
[[gnu::always_inline]] inline Floats all(float x) {
  return _mm256_set1_ps(x);
}
[[gnu::always_inline]] inline Floats times(Floats a, Floats b) {
  return _mm256_mul_ps(a, b);
}
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Floats negated(Floats x) {
  return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

[[gnu::always_inline]] inline Floats plus(Floats a, Floats b) {
  return _mm256_add_ps(a, b);
}
// The f16 numbers in the low and the high half of a vector.
[[gnu::always_inline]] inline Floats low_halves(Bytes x) {
  return _mm256_cvtph_ps(_mm256_castsi256_si128(x));
}
[[gnu::always_inline]] inline Floats high_halves(Bytes x) {
  return _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
}
// The bf16 numbers in the low and the high halves of 32 bits.
[[gnu::always_inline]] inline Floats low_bf16(Bytes pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
[[gnu::always_inline]] inline Floats high_bf16(Bytes pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}

// Lanes of 32 bits, one for each row.
[[gnu::always_inline]] inline Bytes lanes_of(uint32_t x) {
  return _mm256_set1_epi32(static_cast<int>(x));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint8_t* x, int part) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + kLanes * part)));
}
[[gnu::always_inline]] inline Bytes load_lanes(const uint16_t* x, int part) {
  const auto* at = reinterpret_cast<const __m128i*>(x + kLanes * part);
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(at));
}
[[gnu::always_inline]] inline Bytes lanes_right(Bytes x, int bits) {
  return _mm256_srli_epi32(x, bits);
}
[[gnu::always_inline]] inline Bytes lanes_left(Bytes x, int bits) {
  return _mm256_slli_epi32(x, bits);
}
[[gnu::always_inline]] inline Floats numbers(Bytes lanes) {
  return _mm256_cvtepi32_ps(lanes);
}
[[gnu::always_inline]] inline Floats as_floats(Bytes lanes) {
  return _mm256_castsi256_ps(lanes);
}
// Products of 16-bit lanes.
[[gnu::always_inline]] inline Bytes words_times(Bytes x, int by) {
  return _mm256_mullo_epi16(x, words_of(by));
}
// Byte `byte` of every lane in all of its four.
[[gnu::always_inline]] inline Bytes spread_byte(Bytes x, int byte) {
  const __m256i each = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                         0x08080808, 0x0c0c0c0c);
  return _mm256_shuffle_epi8(x, _mm256_add_epi8(each, bytes_of(byte)));
}
// index, with 8 added to the bytes where `bits` have the bit of the lane's `pattern`.
[[gnu::always_inline]] inline Bytes marked(Bytes index, Bytes bits, uint32_t pattern) {
  const __m256i bit = lanes_of(pattern);
  const __m256i where = _mm256_cmpeq_epi8(both(bits, bit), bit);
  return either(index, both(where, bytes_of(8)));
}
// code_book_formats.h names it, but nothing calls it.
template <int kCount>
Bytes look_up_words(const uint16_t* table, Bytes index);

// Books of so many points are read with digits in bytes: loads of 64 bits side by side take less
// than a gather and what spreads digits.
constexpr int kSpreadFrom = 0;

// Of the two rows whose indices `pair` has.
[[gnu::always_inline]] inline __m128i two_rows(const uint64_t* book, int64_t pair, int half) {
  const auto index = static_cast<uint64_t>(pair) >> (16 * half);
  const auto* low = reinterpret_cast<const __m128i*>(book + (index & 0xffff));
  const auto* high = reinterpret_cast<const double*>(book + (index >> 32 & 0xffff));
  return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64(low)), high));
}
[[gnu::always_inline]] inline __m128i two_rows(const uint32_t* book, int64_t pair) {
  const auto index = static_cast<uint64_t>(pair);
  const auto point = [&](int i) { return static_cast<int>(book[index >> (16 * i) & 0xffff]); };
  return _mm_setr_epi32(point(0), point(1), point(2), point(3));
}
// Words 0 and 2, or 1 and 3, of the rows.
[[gnu::always_inline]] inline Bytes of_each_row(const __m128i (&pairs)[4], bool odd) {
  const __m256 a = _mm256_castsi256_ps(_mm256_set_m128i(pairs[2], pairs[0]));
  const __m256 b = _mm256_castsi256_ps(_mm256_set_m128i(pairs[3], pairs[1]));
  return _mm256_castps_si256(odd ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88));
}
[[gnu::always_inline]] inline Bytes spread_digits(const uint64_t* book, Bytes index, int half,
                                                  int four) {
  const __m128i pairs[4] = {two_rows(book, _mm256_extract_epi64(index, 0), half),
                            two_rows(book, _mm256_extract_epi64(index, 1), half),
                            two_rows(book, _mm256_extract_epi64(index, 2), half),
                            two_rows(book, _mm256_extract_epi64(index, 3), half)};
  return of_each_row(pairs, four != 0);
}
[[gnu::always_inline]] inline Bytes spread_digits(const uint32_t* book, Bytes index, int half) {
  const __m128i pairs[4] = {two_rows(book, _mm256_extract_epi64(index, 0)),
                            two_rows(book, _mm256_extract_epi64(index, 1)),
                            two_rows(book, _mm256_extract_epi64(index, 2)),
                            two_rows(book, _mm256_extract_epi64(index, 3))};
  return of_each_row(pairs, half != 0);
}

}  // namespace
