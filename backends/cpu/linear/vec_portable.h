#pragma once
// Vectors of 16 bytes by the compiler's vector extension: four rows of a panel, so four for each
// step. SSE2, NEON and others have them. The same names as in simd/linear/vec_avx2.h.

#include <cstring>

#include "backends/cpu/linear/panel.h"
#include "backends/shared/rb_fn.h"

namespace {

namespace panel = rbee::cpu;

using Bytes [[gnu::vector_size(16)]] = uint8_t;
using Words [[gnu::vector_size(16)]] = int16_t;
using UnsignedWords [[gnu::vector_size(16)]] = uint16_t;
using Ints [[gnu::vector_size(16)]] = int32_t;
using Floats [[gnu::vector_size(16)]] = float;

constexpr int kLanes = 4;                           // rows in one vector
constexpr int kParts = panel::kPanelRows / kLanes;  // vectors in one step
constexpr int kRowSums = 4;                         // of float_kernels.h
constexpr int kFloatTile = 4;                       // rows of x

template <typename T, typename Vector>
inline T read(const Vector* from, int64_t offset) {
  T out;
  std::memcpy(&out, reinterpret_cast<const char*>(from) + offset, sizeof(T));
  return out;
}

inline Bytes load_step(const void* step, int part) {
  return read<Bytes>(static_cast<const char*>(step), 16 * part);
}
inline void store_step(void* step, int part, Bytes x) {
  std::memcpy(static_cast<char*>(step) + 16 * part, &x, sizeof(x));
}
inline Bytes bytes_of(int x) {
  return Bytes{} + static_cast<uint8_t>(x);
}
inline Bytes words_of(int x) {
  return reinterpret_cast<Bytes>(UnsignedWords{} + static_cast<uint16_t>(x));
}
inline Bytes both(Bytes a, Bytes b) {
  return a & b;
}
inline Bytes either(Bytes a, Bytes b) {
  return a | b;
}
inline Bytes differing(Bytes a, Bytes b) {
  return a ^ b;
}
inline Bytes shift_right(Bytes x, int bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<UnsignedWords>(x) >> bits);
}
inline Bytes shift_left(Bytes x, int bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<UnsignedWords>(x) << bits);
}
inline Bytes look_up(const unsigned char* table, Bytes index) {
  Bytes out{};
  for (int i = 0; i < 16; ++i) out[i] = table[index[i]];
  return out;
}

inline Floats load_floats(const float* x, int part) {
  return read<Floats>(x, 16 * part);
}
inline void store_floats(float* x, int part, Floats v) {
  std::memcpy(x + kLanes * part, &v, sizeof(v));
}

// Four numbers, each made from one element of `x`.
template <typename T, typename Make>
inline Floats each(const T* x, int part, Make make) {
  Floats out{};
  for (int i = 0; i < kLanes; ++i) out[i] = make(x[kLanes * part + i]);
  return out;
}
inline Floats load_halves(const uint16_t* x, int part) {
  return each(x, part, [](uint16_t bits) { return rbee::shared::float_of_half(bits); });
}
inline Floats load_u8(const uint8_t* x, int part) {
  return each(x, part, [](uint8_t value) { return static_cast<float>(value); });
}
inline Floats load_i8(const int8_t* x, int part) {
  return each(x, part, [](int8_t value) { return static_cast<float>(value); });
}
inline Floats load_nibbles(const uint8_t* x, int part, int shift) {
  return each(x, part, [shift](uint8_t value) { return static_cast<float>(value >> shift & 15); });
}
inline Floats load_e8m0_halved(const uint8_t* x, int part) {
  return each(x, part, [](uint8_t e) {
    return rbee::shared::float_of_bits(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
  });
}
inline Floats all(float x) {
  return Floats{} + x;
}
inline Floats times(Floats a, Floats b) {
  return a * b;
}
inline Floats fused(Floats a, Floats b, Floats c) {
  return a * b + c;
}
inline Floats plus(Floats a, Floats b) {
  return a + b;
}
inline Floats negated(Floats x) {
  return -x;
}
inline Floats low_halves(Bytes x) {
  const auto halves = reinterpret_cast<UnsignedWords>(x);
  Floats out{};
  for (int i = 0; i < kLanes; ++i) out[i] = rbee::shared::float_of_half(halves[i]);
  return out;
}
inline Floats high_halves(Bytes x) {
  const auto halves = reinterpret_cast<UnsignedWords>(x);
  Floats out{};
  for (int i = 0; i < kLanes; ++i) out[i] = rbee::shared::float_of_half(halves[kLanes + i]);
  return out;
}
inline Floats low_bf16(Bytes pairs) {
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(pairs) << 16);
}
inline Floats high_bf16(Bytes pairs) {
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(pairs) & -65536);
}

// Lanes of 32 bits, one for each row.
using Lanes [[gnu::vector_size(16)]] = uint32_t;

inline Bytes lanes_of(uint32_t x) {
  return reinterpret_cast<Bytes>(Lanes{} + x);
}
template <typename T>
inline Bytes load_lanes(const T* x, int part) {
  Lanes out{};
  for (int i = 0; i < kLanes; ++i) out[i] = x[kLanes * part + i];
  return reinterpret_cast<Bytes>(out);
}
inline Bytes lanes_right(Bytes x, int bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Lanes>(x) >> static_cast<uint32_t>(bits));
}
inline Bytes lanes_left(Bytes x, int bits) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Lanes>(x) << static_cast<uint32_t>(bits));
}
inline Floats numbers(Bytes lanes) {
  return __builtin_convertvector(reinterpret_cast<Ints>(lanes), Floats);
}
inline Floats as_floats(Bytes lanes) {
  return reinterpret_cast<Floats>(lanes);
}
inline Bytes words_times(Bytes x, int by) {
  const auto words = reinterpret_cast<UnsignedWords>(x);
  return reinterpret_cast<Bytes>(words * static_cast<uint16_t>(by));
}
inline Bytes spread_byte(Bytes x, int byte) {
  const auto alone = reinterpret_cast<Lanes>(both(lanes_right(x, 8 * byte), lanes_of(0xff)));
  return reinterpret_cast<Bytes>(alone | alone << 8 | alone << 16 | alone << 24);
}
inline Bytes marked(Bytes index, Bytes bits, uint32_t pattern) {
  return index | (reinterpret_cast<Bytes>((bits & lanes_of(pattern)) != 0) & bytes_of(8));
}
// As in vec_avx2.h.
constexpr int kSpreadFrom = 0;
inline Bytes spread_digits(const uint64_t* book, Bytes index, int half, int four) {
  const auto words = reinterpret_cast<UnsignedWords>(index);
  Lanes out{};
  for (int i = 0; i < kLanes; ++i) {
    out[i] = static_cast<uint32_t>(book[words[2 * i + half]] >> (32 * four));
  }
  return reinterpret_cast<Bytes>(out);
}
inline Bytes spread_digits(const uint32_t* book, Bytes index, int half) {
  const auto words = reinterpret_cast<UnsignedWords>(index);
  Lanes out{};
  for (int i = 0; i < kLanes; ++i) out[i] = book[words[2 * i + half]];
  return reinterpret_cast<Bytes>(out);
}
// code_book_formats.h names it, but nothing calls it.
template <int kCount>
Bytes look_up_words(const uint16_t* table, Bytes index);

}  // namespace
