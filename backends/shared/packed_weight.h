#pragma once
// The layout in which GPUs' linear kernels read block-quantised weights. C++14 subset without
// standard headers. A packed weight is its rows one after another; a row is up to four planes, each
// begun at a multiple of 16 bytes, that together hold what the file's blocks hold (layouts:
// quant_blocks.h) less Q8_K's sums:
//
//   low    kLow bits of each element's code
//          4 bits: word i of a plane is elements 8 i + 0..7, byte j of it 8 i + j (low nibble) and
//                  8 i + 4 + j (high nibble)
//          2 bits: word i is elements 16 i + 0..15, element 16 i + 4 t + j at bit 8 j + 2 t
//          8 bits: as they are
//   high   kHigh bits above those
//          1 bit:  word i is elements 32 i + 0..31, element 32 i + 4 t + j at bit 8 j + t
//          2 bits: as the low plane of 2 bits
//   scale  kScaleBytes for every kScaleSpan elements
//   super  kSuperBytes for every 256 elements: the f16 that scales are in units of
//
// So a shift and a mask give four neighbouring codes in the bytes of a word, ready for integer dot
// products, and a lane's load of 16 bytes is 32 elements of a 4-bit format.
//
// A code is quant_of() plus kOffset, or with kCodeBook the index into the format's table, or the
// bits of a one-byte float. Formats of few bits: packed_code_books.h.

#include "backends/shared/quant_blocks.h"

namespace rbee {
namespace shared {

// Reads words from 16-byte aligned device memory. Otherwise CUDA's compiler forgets which memory it
// is.
RB_FN u32 read_u32(const RB_GLOBAL u8* from) {
#if defined(__CUDA_ARCH__)
  u32 word;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(from));
  return word;
#elif defined(__METAL_VERSION__) || defined(__AMDGCN__)
  return *reinterpret_cast<const RB_GLOBAL u32*>(from);
#else
  u32 word;
  __builtin_memcpy(&word, from, sizeof word);
  return word;
#endif
}
RB_FN u8 read_u8(const RB_GLOBAL u8* from) {
  return *from;
}
RB_FN u16 read_u16(const RB_GLOBAL u8* from) {
#if defined(__CUDA_ARCH__)
  u16 half;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(half) : "l"(from));
  return half;
#elif defined(__METAL_VERSION__) || defined(__AMDGCN__)
  return *reinterpret_cast<const RB_GLOBAL u16*>(from);
#else
  u16 half;
  __builtin_memcpy(&half, from, sizeof half);
  return half;
#endif
}

struct alignas(16) Words4 {
  u32 words[4];
};
RB_FN Words4 read_words4(const RB_GLOBAL u8* from) {
#if defined(__CUDA_ARCH__)
  Words4 out;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(out.words[0]), "=r"(out.words[1]), "=r"(out.words[2]), "=r"(out.words[3])
      : "l"(from));
  return out;
#elif defined(__METAL_VERSION__) || defined(__AMDGCN__)
  return *reinterpret_cast<const RB_GLOBAL Words4*>(from);
#else
  Words4 words;
  __builtin_memcpy(&words, from, sizeof words);
  return words;
#endif
}

struct alignas(8) Words2 {
  u32 words[2];
};
RB_FN Words2 read_words2(const RB_GLOBAL u8* from) {
#if defined(__CUDA_ARCH__)
  Words2 out;
  asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(out.words[0]), "=r"(out.words[1]) : "l"(from));
  return out;
#elif defined(__METAL_VERSION__) || defined(__AMDGCN__)
  return *reinterpret_cast<const RB_GLOBAL Words2*>(from);
#else
  Words2 words;
  __builtin_memcpy(&words, from, sizeof words);
  return words;
#endif
}

enum class CodeBook { none, iq4, e2m1, e4m3, points };

template <int kLowBits, int kHighBits, int kCodeOffset, int kBytes, int kSpan, int kBytesSuper = 0,
          CodeBook kBook = CodeBook::none>
struct PackedPlanes {
  static constexpr int kLow = kLowBits;
  static constexpr int kHigh = kHighBits;
  static constexpr int kOffset = kCodeOffset;
  static constexpr int kScaleBytes = kBytes;
  static constexpr int kScaleSpan = kSpan;
  static constexpr int kSuperBytes = kBytesSuper;
  static constexpr CodeBook kCodeBook = kBook;
};

// The planes of each format, and its scale record.
template <class Block>
struct PackedFormat;
// d, f16
template <>
struct PackedFormat<BlockQ4_0> : PackedPlanes<4, 0, 8, 2, 32> {};
template <>
struct PackedFormat<BlockQ5_0> : PackedPlanes<4, 1, 16, 2, 32> {};
template <>
struct PackedFormat<BlockQ8_0> : PackedPlanes<8, 0, 0, 2, 32> {};
template <>
struct PackedFormat<BlockIQ4_NL> : PackedPlanes<4, 0, 0, 2, 32, 0, CodeBook::iq4> {};
// d and m, f16
template <>
struct PackedFormat<BlockQ4_1> : PackedPlanes<4, 0, 0, 4, 32> {};
template <>
struct PackedFormat<BlockQ5_1> : PackedPlanes<4, 1, 0, 4, 32> {};
// E8M0
template <>
struct PackedFormat<BlockMXFP4> : PackedPlanes<4, 0, 0, 1, 32, 0, CodeBook::e2m1> {};
// d, f32
template <>
struct PackedFormat<BlockQ8_K> : PackedPlanes<8, 0, 0, 4, 256> {};
// d, f32
template <>
struct PackedFormat<BlockF8_G128> : PackedPlanes<8, 0, 0, 4, 128, 0, CodeBook::e4m3> {};
// Two bytes of Q2_K's scales; super: d, dmin
template <>
struct PackedFormat<BlockQ2_K> : PackedPlanes<2, 0, 0, 2, 32, 4> {};
// Eight pairs of 6 bits (the scales of both halves of a group of 32), see pair_of_6; super: d
template <>
struct PackedFormat<BlockQ3_K> : PackedPlanes<2, 1, 4, 12, 256, 2> {};
// d, dmin, then eight pairs of 6 bits (scale and minimum), see pair_of_6
template <>
struct PackedFormat<BlockQ4_K> : PackedPlanes<4, 0, 0, 16, 256> {};
template <>
struct PackedFormat<BlockQ5_K> : PackedPlanes<4, 1, 0, 16, 256> {};
// Two scales, i8; super: d
template <>
struct PackedFormat<BlockQ6_K> : PackedPlanes<4, 2, 32, 2, 32, 2> {};
// d, scales_h, scales_l
template <>
struct PackedFormat<BlockIQ4_XS> : PackedPlanes<4, 0, 0, 8, 256, 0, CodeBook::iq4> {};

// Offsets of a row's planes in bytes. The low plane comes first.
struct PackedLayout {
  i64 high, scale, super;
  i64 row_bytes;  // a multiple of 16
};

RB_FN constexpr i64 to_16_bytes(i64 bytes) {
  return (bytes + 15) / 16 * 16;
}

// The layout of rows of `in` elements, a multiple of Block::kElements.
template <class Block>
RB_FN PackedLayout packed_layout(i64 in) {
  using F = PackedFormat<Block>;
  PackedLayout at{};
  at.high = to_16_bytes(in / 8 * F::kLow);
  at.scale = at.high + to_16_bytes(in / 8 * F::kHigh);
  at.super = at.scale + to_16_bytes(in / F::kScaleSpan * F::kScaleBytes);
  at.row_bytes = at.super + to_16_bytes(in / 256 * F::kSuperBytes);
  return at;
}

// Addresses of a row's planes. From: a pointer to bytes, or a class like one with functions read_u8
// to read_words4.
template <class From>
struct RowPlanes {
  From low, high, scale, super;
};
RB_FN RowPlanes<const RB_GLOBAL u8*> planes_of(const RB_GLOBAL u8* row,
                                               const RB_COPIED PackedLayout& at) {
  return {row, row + at.high, row + at.scale, row + at.super};
}

// A unit is 128 neighbouring elements of a row; this is its size in each plane. If two units share
// a scale record or a super, both have it. A record of two bytes counts with its neighbour.
template <class Block>
struct PackedUnit {
  using F = PackedFormat<Block>;
  static constexpr int kElements = 128;
  static constexpr int kLow = kElements / 8 * F::kLow;
  static constexpr int kHigh = kElements / 8 * F::kHigh;
  static constexpr int kScales = F::kScaleSpan < kElements ? kElements / F::kScaleSpan : 1;
  static constexpr int kScale = F::kScaleBytes * kScales == 2 ? 4 : F::kScaleBytes * kScales;
  static constexpr int kSuper = F::kSuperBytes == 2 ? 4 : F::kSuperBytes;
  static constexpr int kBytes = kLow + kHigh + kScale + kSuper;
};

// Eight pairs of 6-bit numbers in 12 bytes: the low 8 bits of pair g are byte g, its high 4 bits
// nibble g of the last word. The pair's first number is the low 6 bits.
RB_FN u32 pair_of_6(u32 low_word, u32 high_word, int group) {
  return ((low_word >> (8 * (group & 3))) & 255u) | (((high_word >> (4 * group)) & 15u) << 8);
}

// Four codes in the bytes of a word: elements 4 t + 0..3 of the 32 (2 bits: 16) that `word` is of.
RB_FN u32 two_bit_codes(u32 word, int t) {
  return (word >> (2 * t)) & 0x03030303u;
}
RB_FN u32 one_bit_codes(u32 word, int t) {
  return (word >> t) & 0x01010101u;
}

// The codes of elements column + 0..3 in the bytes of a word; `column` is a multiple of 4.
template <class Block>
RB_FN u32 packed_codes(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 column) {
  using F = PackedFormat<Block>;
  u32 codes;
  if (F::kLow == 8) {
    codes = read_u32(row + column);
  } else if (F::kLow == 4) {
    codes = (read_u32(row + column / 8 * 4) >> (column & 4)) & 0x0f0f0f0fu;
  } else {
    codes = two_bit_codes(read_u32(row + column / 16 * 4), static_cast<int>(column / 4 % 4));
  }
  const RB_GLOBAL u8* high = row + at.high;
  if (F::kHigh == 1) {
    codes |= one_bit_codes(read_u32(high + column / 32 * 4), static_cast<int>(column / 4 % 8))
             << F::kLow;
  } else if (F::kHigh == 2) {
    codes |= two_bit_codes(read_u32(high + column / 16 * 4), static_cast<int>(column / 4 % 4))
             << F::kLow;
  }
  return codes;
}

// The quant_of() of byte `j` of a word of codes.
template <class Block>
RB_FN float packed_quant(u32 codes, int j) {
  using F = PackedFormat<Block>;
  const u32 code = (codes >> (8 * j)) & 255u;
  if (F::kCodeBook == CodeBook::e4m3) {
    return float_of_half(half_of_e4m3(static_cast<u8>(code))) * 256.0f;
  }
  int value = static_cast<int>(code) - F::kOffset;
  if (F::kCodeBook == CodeBook::iq4) value = iq4_value(static_cast<int>(code));
  if (F::kCodeBook == CodeBook::e2m1) value = e2m1_doubled(static_cast<int>(code));
  if (F::kLow == 8 || F::kCodeBook == CodeBook::points) value = static_cast<i8>(code);
  return static_cast<float>(value);
}

// The scales of 32 elements: element i is d[i / 16] * q + m[i / 16].
struct PackedScale {
  float d[2], m[2];
};

namespace packed {

RB_FN PackedScale both(float d, float m) {
  return PackedScale{{d, d}, {m, m}};
}
RB_FN float low_half(u32 word) {
  return float_of_half(static_cast<u16>(word));
}
RB_FN float high_half(u32 word) {
  return float_of_half(static_cast<u16>(word >> 16));
}

// One f16 for every 32 elements.
struct HalfScale {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u16(row.scale + 2 * group);
  }
  RB_FN PackedScale value(int) const { return both(low_half(d), -0.0f); }
};
struct HalfPair {
  u32 pair;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    pair = read_u32(row.scale + 4 * group);
  }
  RB_FN PackedScale value(int) const { return both(low_half(pair), high_half(pair)); }
};
// Q4_K and Q5_K.
struct KScale {
  u32 halves, low, high, tops;  // not an array: compilers keep such in memory
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const Words4 record = read_words4(row.scale + group / 8 * 16);
    halves = record.words[0];
    low = record.words[1];
    high = record.words[2];
    tops = record.words[3];
  }
  RB_FN PackedScale value(int g) const {
#if defined(__AMDGCN__)
    // clang would choose between their addresses, in scratch memory.
    const u32 word = low ^ ((low ^ high) & (g < 4 ? 0u : ~0u));
#else
    const u32 word = g < 4 ? low : high;
#endif
    const u32 pair = pair_of_6(word, tops, g);
    return both(low_half(halves) * static_cast<float>(pair & 63u),
                -(high_half(halves) * static_cast<float>(pair >> 6)));
  }
};

}  // namespace packed

// The stored scale of elements 32 * group + 0..31 of a row: load() reads it, and value() with group
// % 8 decodes it. Two steps, so that kernels can load in advance.
template <class Block>
struct StoredScale;
template <>
struct StoredScale<BlockQ4_0> : packed::HalfScale {};
template <>
struct StoredScale<BlockQ5_0> : packed::HalfScale {};
template <>
struct StoredScale<BlockQ8_0> : packed::HalfScale {};
template <>
struct StoredScale<BlockIQ4_NL> : packed::HalfScale {};
template <>
struct StoredScale<BlockQ4_1> : packed::HalfPair {};
template <>
struct StoredScale<BlockQ5_1> : packed::HalfPair {};
template <>
struct StoredScale<BlockQ4_K> : packed::KScale {};
template <>
struct StoredScale<BlockQ5_K> : packed::KScale {};
template <>
struct StoredScale<BlockMXFP4> {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u8(row.scale + group);
  }
  RB_FN PackedScale value(int) const {
    return packed::both(e8m0_halved(static_cast<u8>(d)), -0.0f);
  }
};
template <>
struct StoredScale<BlockQ8_K> {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u32(row.scale + group / 8 * 4);
  }
  RB_FN PackedScale value(int) const { return packed::both(float_of_bits(d), -0.0f); }
};
template <>
struct StoredScale<BlockF8_G128> {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u32(row.scale + group / 4 * 4);
  }
  RB_FN PackedScale value(int) const { return packed::both(float_of_bits(d), -0.0f); }
};
template <>
struct StoredScale<BlockQ2_K> {
  u32 halves, bytes;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    halves = read_u32(row.super + group / 8 * 4);
    bytes = read_u16(row.scale + 2 * group);
  }
  RB_FN PackedScale value(int) const {
    const float d = packed::low_half(halves);
    const float dmin = packed::high_half(halves);
    return PackedScale{
        {d * static_cast<float>(bytes & 15u), d * static_cast<float>((bytes >> 8) & 15u)},
        {-(dmin * static_cast<float>((bytes >> 4) & 15u)),
         -(dmin * static_cast<float>(bytes >> 12))}};
  }
};
template <>
struct StoredScale<BlockQ3_K> {
  u32 low, high, super_scale;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const auto record = row.scale + group / 8 * 12;
    low = read_u32(record + (group & 4));
    high = read_u32(record + 8);
    super_scale = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int g) const {
    const u32 pair = pair_of_6(low, high, g);
    const float d = packed::low_half(super_scale);
    return PackedScale{{d * static_cast<float>(static_cast<int>(pair & 63u) - 32),
                        d * static_cast<float>(static_cast<int>(pair >> 6) - 32)},
                       {-0.0f, -0.0f}};
  }
};
template <>
struct StoredScale<BlockQ6_K> {
  u32 bytes, super_scale;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    bytes = read_u16(row.scale + 2 * group);
    super_scale = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const {
    const float d = packed::low_half(super_scale);
    return PackedScale{{d * static_cast<float>(static_cast<i8>(bytes & 255u)),
                        d * static_cast<float>(static_cast<i8>(bytes >> 8))},
                       {-0.0f, -0.0f}};
  }
};
template <>
struct StoredScale<BlockIQ4_XS> {
  u32 halves, low_bits;  // d and scales_h, scales_l
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const auto record = row.scale + group / 8 * 8;
    halves = read_u32(record);
    low_bits = read_u32(record + 4);
  }
  RB_FN PackedScale value(int g) const {
    const u32 low = (low_bits >> (4 * g)) & 15u;
    const u32 high = (halves >> (16 + 2 * g)) & 3u;
    const int s = static_cast<int>(low | (high << 4)) - 32;
    return packed::both(packed::low_half(halves) * static_cast<float>(s), -0.0f);
  }
};

template <class Block>
RB_FN PackedScale packed_scale(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at,
                               i64 group) {
  StoredScale<Block> stored;
  stored.load(planes_of(row, at), group);
  return stored.value(static_cast<int>(group & 7));
}

// Codes of a row that a lane reads at a time if x is one row.
template <class Block>
RB_FN constexpr int packed_piece() {
  return PackedFormat<Block>::kLow == 8 ? 16 : 32;
}

// Pieces that a wave then works on at a time. A row has at least this many.
enum { kPackedTrip = 64 };
// Their bytes in the planes of a row.
template <class Block>
struct PackedTrip {
  using F = PackedFormat<Block>;
  static constexpr int kElements = kPackedTrip * packed_piece<Block>();
  static constexpr int kLow = kElements / 8 * F::kLow;
  static constexpr int kHigh = kElements / 8 * F::kHigh;
  static constexpr int kScale = kElements / F::kScaleSpan * F::kScaleBytes;
  static constexpr int kSuper = kElements / 256 * F::kSuperBytes;
  static constexpr int kBytes = kLow + kHigh + kScale + kSuper;
};

// Elements column + 0..7 of a packed row (16-byte aligned); `column` is a multiple of 8. The same
// values as dequantize() of the file's blocks.
template <class Block>
RB_FN void dequantize_packed8(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 column,
                              RB_COPIED float* out) {
  const PackedScale scale = packed_scale<Block>(row, at, column / 32);
  const int half = static_cast<int>(column / 16 % 2);
  for (int word = 0; word < 2; ++word) {
    const u32 codes = packed_codes<Block>(row, at, column + 4 * word);
    for (int j = 0; j < 4; ++j) {
      const float q = packed_quant<Block>(codes, j);
      out[4 * word + j] = apply_scale(BlockScale{scale.d[half], scale.m[half]}, q);
    }
  }
}

}  // namespace shared
}  // namespace rbee

#include "backends/shared/packed_code_books.h"
