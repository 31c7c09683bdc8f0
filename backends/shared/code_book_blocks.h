#pragma once
// Block formats of few bits, in the terms of quant_blocks.h: ggml's types whose codes name points
// of a code book (IQ1, IQ2, IQ3), its ternary types, and NVFP4. For IQ1, an eighth is added to
// every digit, so quant_of() is eight times the value and scale_of() an eighth of the scale.

#include "backends/shared/code_books.h"
#include "backends/shared/quant_blocks.h"

namespace rbee {
namespace shared {

struct BlockIQ1_S {
  enum { kElements = 256, kGroup = 32 };
  u16 d;      // f16
  u8 qs[32];  // low 8 bits of the points of 8 elements
  u16 qh[8];  // of 32: high 3 bits of four points, 3 bits of scale, sign of the eighth
};
struct BlockIQ1_M {
  enum { kElements = 256, kGroup = 16 };
  u8 qs[32];      // as in iq1_s
  u8 qh[16];      // nibble for each point: high 3 bits, sign of the eighth
  u16 scales[4];  // 3 bits for each 16 elements; in the highest 4 bits a part of d, f16
};
struct BlockIQ2_XXS {
  enum { kElements = 256, kGroup = 32 };
  u16 d;      // f16
  u8 qs[64];  // of 32: four points, then a word of four times 7 signs and 4 bits of scale
};
struct BlockIQ2_XS {
  enum { kElements = 256, kGroup = 16 };
  u16 d;         // f16
  u16 qs[32];    // 9 bits of point, 7 signs
  u8 scales[8];  // 4 bits for each 16 elements
};
struct BlockIQ2_S {
  enum { kElements = 256, kGroup = 16 };
  u16 d;         // f16
  u8 qs[32];     // low 8 bits of points
  u8 signs[32];  // of 8 elements
  u8 qh[8];      // high 2 bits of four points
  u8 scales[8];  // as in iq2_xs
};
struct BlockIQ3_XXS {
  enum { kElements = 256, kGroup = 32 };
  u16 d;         // f16
  u8 qs[64];     // points of 4 elements
  u8 signs[32];  // of 32: a word as in iq2_xxs
};
struct BlockIQ3_S {
  enum { kElements = 256, kGroup = 32 };
  u16 d;         // f16
  u8 qs[64];     // low 8 bits of points of 4 elements
  u8 qh[8];      // high bits of eight points
  u8 signs[32];  // of 8 elements
  u8 scales[4];  // 4 bits for each 32 elements
};
struct BlockTQ1_0 {
  enum { kElements = 256, kGroup = 256 };
  u8 qs[48];  // five digits of base 3, see trit_of; digit n of qs[j] is element 32 n + j, of
              // qs[32 + j] element 160 + 16 n + j
  u8 qh[4];   // four digits: digit n of qh[j] is element 240 + 4 n + j
  u16 d;      // f16
};
struct BlockTQ2_0 {
  enum { kElements = 256, kGroup = 256 };
  u8 qs[64];  // 2 bits as in q2_k, minus 1
  u16 d;      // f16
};
struct BlockNVFP4 {
  enum { kElements = 64, kGroup = 16 };
  u8 d[4];    // of 16 elements: E4M3 without its sign
  u8 qs[32];  // E2M1 codes: qs[8 s + j] is elements 16 s + j (low nibble) and 16 s + 8 + j
};

static_assert(sizeof(BlockIQ1_S) == 50, "iq1_s is a file format");
static_assert(sizeof(BlockIQ1_M) == 56, "iq1_m is a file format");
static_assert(sizeof(BlockIQ2_XXS) == 66, "iq2_xxs is a file format");
static_assert(sizeof(BlockIQ2_XS) == 74, "iq2_xs is a file format");
static_assert(sizeof(BlockIQ2_S) == 82, "iq2_s is a file format");
static_assert(sizeof(BlockIQ3_XXS) == 98, "iq3_xxs is a file format");
static_assert(sizeof(BlockIQ3_S) == 110, "iq3_s is a file format");
static_assert(sizeof(BlockTQ1_0) == 54, "tq1_0 is a file format");
static_assert(sizeof(BlockTQ2_0) == 66, "tq2_0 is a file format");
static_assert(sizeof(BlockNVFP4) == 36, "nvfp4 is a file format");

// The code book of a format, in constant memory; null if it has none.
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define RB_BOOK(name) nullptr  // nvcc's pass over the host's side, which has no device memory
#else
#define RB_BOOK(name) name
#endif
template <class Block>
struct BookOf {
  enum { kPoints = 0 };
  RB_FN static const u16* words() { return nullptr; }
};
template <>
struct BookOf<BlockIQ1_S> {
  enum { kPoints = 2048 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ1); }
};
template <>
struct BookOf<BlockIQ1_M> : BookOf<BlockIQ1_S> {};
template <>
struct BookOf<BlockIQ2_XXS> {
  enum { kPoints = 256 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ2_XXS); }
};
template <>
struct BookOf<BlockIQ2_XS> {
  enum { kPoints = 512 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ2_XS); }
};
template <>
struct BookOf<BlockIQ2_S> {
  enum { kPoints = 1024 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ2_S); }
};
template <>
struct BookOf<BlockIQ3_XXS> {
  enum { kPoints = 256 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ3_XXS); }
};
template <>
struct BookOf<BlockIQ3_S> {
  enum { kPoints = 512 };
  RB_FN static const u16* words() { return RB_BOOK(kBookIQ3_S); }
};
#undef RB_BOOK

// Digit i of a point: 2 bits of 8 elements, 3 bits of 4.
RB_FN int digit_of_8(u32 point, int i) {
  return static_cast<int>((point >> (2 * i)) & 3u);
}
RB_FN int digit_of_4(u32 point, int i) {
  return static_cast<int>((point >> (3 * i)) & 7u);
}

// The values of digits: 8 25 43; 4 12 20 28 36 44 52 62; 1 3 5 7 9 11 13 15.
RB_FN int iq2_value(int digit) {
  return 8 + 17 * digit + (digit >> 1);
}
RB_FN int iq3_xxs_value(int digit) {
  return 4 + 8 * digit + (((digit + 1) >> 2) & 2);
}
RB_FN int iq3_s_value(int digit) {
  return 1 + 2 * digit;
}

// Signs of 8 elements from those of 7: an even number is negative.
RB_FN u32 even_signs(u32 seven) {
  const u32 folded = seven ^ (seven >> 4);
  return seven | (((0x6996u >> (folded & 15u)) & 1u) << 7);
}
RB_FN int with_sign(int value, u32 signs, int i) {
  return ((signs >> i) & 1u) != 0 ? -value : value;
}

// A word at any address.
RB_FN u32 word_of(const RB_GLOBAL u8* bytes) {
  return bytes[0] | (static_cast<u32>(bytes[1]) << 8) | (static_cast<u32>(bytes[2]) << 16) |
         (static_cast<u32>(bytes[3]) << 24);
}

// 4 bits of scale in quarters of an f16, and a half: iq2; iq3_xxs has halves.
RB_FN BlockScale half_more(u16 d, int scale, float unit) {
  return no_offset(float_of_half(d) * (0.5f + static_cast<float>(scale)) * unit);
}

RB_FN int eight_times(u32 point, int i, bool negative) {
  return 8 * (digit_of_8(point, i) - 1) + (negative ? -1 : 1);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ1_S& b, int group) {
  const int scale = 2 * ((b.qh[group] >> 12) & 7) + 1;
  return no_offset(float_of_half(b.d) * static_cast<float>(scale) * 0.125f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ1_S& b, int i) {
  const int eight = i >> 3;
  const u32 high = b.qh[i >> 5];
  const u32 point = b.qs[eight] | (((high >> (3 * (eight & 3))) & 7u) << 8);
  return eight_times(BookOf<BlockIQ1_S>::words()[point], i & 7, (high & 0x8000u) != 0);
}

RB_FN u16 scale_parts(const RB_GLOBAL BlockIQ1_M& b) {
  return static_cast<u16>((b.scales[0] >> 12) | ((b.scales[1] >> 8) & 0x00f0u) |
                          ((b.scales[2] >> 4) & 0x0f00u) | (b.scales[3] & 0xf000u));
}
RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ1_M& b, int group) {
  const int scale = 2 * ((b.scales[group >> 2] >> (3 * (group & 3))) & 7) + 1;
  return no_offset(float_of_half(scale_parts(b)) * static_cast<float>(scale) * 0.125f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ1_M& b, int i) {
  const int eight = i >> 3;
  const u32 high = static_cast<u32>(b.qh[eight >> 1]) >> (4 * (eight & 1));
  const u32 point = b.qs[eight] | ((high & 7u) << 8);
  return eight_times(BookOf<BlockIQ1_M>::words()[point], i & 7, (high & 8u) != 0);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ2_XXS& b, int group) {
  return half_more(b.d, b.qs[8 * group + 7] >> 4, 0.25f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ2_XXS& b, int i) {
  const int eight = (i >> 3) & 3;
  const RB_GLOBAL u8* group = b.qs + ((i >> 5) << 3);
  const u32 signs = even_signs((word_of(group + 4) >> (7 * eight)) & 127u);
  const u32 point = BookOf<BlockIQ2_XXS>::words()[group[eight]];
  return with_sign(iq2_value(digit_of_8(point, i & 7)), signs, i & 7);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ2_XS& b, int group) {
  return half_more(b.d, (b.scales[group >> 1] >> (4 * (group & 1))) & 15, 0.25f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ2_XS& b, int i) {
  const u32 code = b.qs[i >> 3];
  const u32 point = BookOf<BlockIQ2_XS>::words()[code & 511u];
  return with_sign(iq2_value(digit_of_8(point, i & 7)), even_signs(code >> 9), i & 7);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ2_S& b, int group) {
  return half_more(b.d, (b.scales[group >> 1] >> (4 * (group & 1))) & 15, 0.25f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ2_S& b, int i) {
  const int eight = i >> 3;
  const u32 high = (static_cast<u32>(b.qh[eight >> 2]) >> (2 * (eight & 3))) & 3u;
  const u32 point = BookOf<BlockIQ2_S>::words()[b.qs[eight] | (high << 8)];
  return with_sign(iq2_value(digit_of_8(point, i & 7)), b.signs[eight], i & 7);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ3_XXS& b, int group) {
  return half_more(b.d, b.signs[4 * group + 3] >> 4, 0.5f);
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ3_XXS& b, int i) {
  const u32 all = word_of(b.signs + ((i >> 5) << 2));
  const u32 signs = even_signs((all >> (7 * ((i >> 3) & 3))) & 127u);
  const u32 point = BookOf<BlockIQ3_XXS>::words()[b.qs[i >> 2]];
  return with_sign(iq3_xxs_value(digit_of_4(point, i & 3)), signs, i & 7);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ3_S& b, int group) {
  const int scale = 1 + 2 * ((b.scales[group >> 1] >> (4 * (group & 1))) & 15);
  return no_offset(float_of_half(b.d) * static_cast<float>(scale));
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ3_S& b, int i) {
  const int four = i >> 2;
  const u32 high = (static_cast<u32>(b.qh[four >> 3]) >> (four & 7)) & 1u;
  const u32 point = BookOf<BlockIQ3_S>::words()[b.qs[four] | (high << 8)];
  return with_sign(iq3_s_value(digit_of_4(point, i & 3)), b.signs[i >> 3], i & 7);
}

// Digit n, 0 to 4, of a byte that holds the number 0.d0 d1 d2 d3 d4 of base 3, in 256ths.
RB_FN constexpr u32 power_of_3(int n) {
  return static_cast<u32>((0x511b090301ull >> (8 * n)) & 255u);
}
RB_FN int trit_of(u32 byte, int n) {
  return static_cast<int>((((byte * power_of_3(n)) & 255u) * 3) >> 8);
}
// Where element i of a block of tq1_0 is.
RB_FN u32 trit_byte(const RB_GLOBAL BlockTQ1_0& b, int i) {
  if (i >= 240) return b.qh[i & 3];
  return i < 160 ? b.qs[i & 31] : b.qs[32 + (i & 15)];
}
RB_FN int trit_place(int i) {
  if (i >= 240) return (i - 240) >> 2;
  return i < 160 ? i >> 5 : (i - 160) >> 4;
}
RB_FN BlockScale scale_of(const RB_GLOBAL BlockTQ1_0& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockTQ1_0& b, int i) {
  return trit_of(trit_byte(b, i), trit_place(i)) - 1;
}

// The block as words 0 to 12. Byte j of a word has the digits of elements 20 word + 4 n + j, so
// neighbours are in neighbouring bytes.
RB_FN u32 trit_word(const RB_GLOBAL BlockTQ1_0& b, int word) {
  u32 bytes = 0;
  for (int j = 0; j < 4; ++j) {
    u32 number = 0;
    for (int n = 0; n < 5; ++n) {
      const int i = 20 * word + 4 * n + j;
      number = 3 * number + (i < 256 ? static_cast<u32>(quant_of(b, i) + 1) : 0u);
    }
    bytes |= (number * 256 + 242) / 243 << (8 * j);
  }
  return bytes;
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockTQ2_0& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockTQ2_0& b, int i) {
  return crumb(b.qs, i) - 1;
}

// Half of an E4M3 number. Ignores its sign, and, as in ggml, the code of NaN is zero.
RB_FN float ue4m3_halved(u8 code) {
  return code == 0x7f ? 0.0f : float_of_half(half_of_e4m3(code & 0x7f)) * 128.0f;
}
RB_FN BlockScale scale_of(const RB_GLOBAL BlockNVFP4& b, int group) {
  return no_offset(ue4m3_halved(b.d[group]));
}
RB_FN int nvfp4_code(const RB_GLOBAL BlockNVFP4& b, int i) {
  return (b.qs[((i >> 4) << 3) + (i & 7)] >> ((i >> 1) & 4)) & 15;
}
RB_FN int quant_of(const RB_GLOBAL BlockNVFP4& b, int i) {
  return e2m1_doubled(nvfp4_code(b, i));
}

}  // namespace shared
}  // namespace rbee
