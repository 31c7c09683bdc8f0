#pragma once
// The packed layout of formats of few bits; packed_weight.h, which includes this, has the others.
// Codes are read as signed bytes, ready for integer dot products. The planes of a group of 32
// elements hold:
//
//            low                           high          scale                  super
//   iq1_s    4 bytes of points             -             u16 of the file        d
//   iq1_m    4 bytes of points             -             two bytes of qh        d, scales: 8 bytes
//   iq2_xxs  points, word of signs         -             -                      d
//   iq2_xs   four codes of 16 bits         -             byte of scales         d
//   iq2_s    points, word of signs         -             bytes of qh, scales    d
//   iq3_xxs  8 bytes of points             signs         -                      d
//   iq3_s    8 bytes of points             signs         qh; 4 bytes of scales  d
//   tq1_0    -                             -             13 words (trit_word)   d
//   tq2_0, nvfp4: as formats with plain codes; nvfp4's scale is two bytes
//
// Points are expanded into words from which codes take few instructions: the eight digits of IQ1
// and IQ2 become eight indices in the nibbles, and the four values of IQ3 become the bytes. Kernels
// keep a code book of expanded points.

#include "backends/shared/code_book_blocks.h"

namespace rbee {
namespace shared {

template <>
struct PackedFormat<BlockIQ1_S> : PackedPlanes<1, 0, 0, 2, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ1_M> : PackedPlanes<1, 0, 0, 2, 32, 8, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_XXS> : PackedPlanes<2, 0, 0, 2, 256, 0, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_XS> : PackedPlanes<2, 0, 0, 1, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_S> : PackedPlanes<2, 0, 0, 2, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ3_XXS> : PackedPlanes<2, 1, 0, 2, 256, 0, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ3_S> : PackedPlanes<2, 1, 0, 12, 256, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockTQ1_0> : PackedPlanes<0, 0, 0, 52, 256, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockTQ2_0> : PackedPlanes<2, 0, 1, 2, 256> {};
template <>
struct PackedFormat<BlockNVFP4> : PackedPlanes<4, 0, 0, 2, 32, 0, CodeBook::e2m1> {};

// Four digits to the bytes of a word: 2 bits each of 8, 3 bits each of 12.
RB_FN u32 spread_twos(u32 digits) {
  const u32 pairs = (digits | (digits << 12)) & 0x000f000fu;
  return (pairs | (pairs << 6)) & 0x03030303u;
}
RB_FN u32 spread_threes(u32 digits) {
  const u32 pairs = (digits | (digits << 10)) & 0x003f003fu;
  return (pairs | (pairs << 5)) & 0x07070707u;
}
// Four bits to the lowest bits of a word's bytes.
RB_FN u32 spread_ones(u32 bits) {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

// Eight indices below 8 in the nibbles of a word. Their order depends on the instruction that takes
// four at once: NVIDIA's prmt takes four neighbours, AMD's v_perm_b32 one of each byte.
#if defined(__CUDA_ARCH__)
RB_FN u32 prmt(u32 low, u32 high, u32 selectors) {
  u32 bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
  return bytes;
}
RB_FN u32 nibbles_of_twos(u32 digits) {
  const u32 bytes = (digits | (digits << 8)) & 0x00ff00ffu;
  const u32 fours = (bytes | (bytes << 4)) & 0x0f0f0f0fu;
  return (fours | (fours << 2)) & 0x33333333u;
}
RB_FN u32 nibbles_of_bits(u32 bits) {
  const u32 fours = (bits | (bits << 12)) & 0x000f000fu;
  const u32 twos = (fours | (fours << 6)) & 0x03030303u;
  return (twos | (twos << 3)) & 0x11111111u;
}
// The bytes of a table of 8 that indices 4 half + 0..3 name.
RB_FN u32 look_up_four(u32 low, u32 high, u32 nibbles, int half) {
  return prmt(low, high, nibbles >> (16 * half));
}
// Bytes of all bits where one of four bits is set.
RB_FN u32 sign_bytes(u32 bits) {
  return prmt((bits & 15u) * 0x10204080u, 0, 0xba98u);  // the highest bits of bytes, eight times
}
#else
RB_FN u32 nibbles_of_twos(u32 digits) {
  return spread_twos(digits & 255u) | (spread_twos(digits >> 8) << 4);
}
RB_FN u32 nibbles_of_bits(u32 bits) {
  return spread_ones(bits) | (spread_ones(bits >> 4) << 4);
}
RB_FN u32 look_up_four(u32 low, u32 high, u32 nibbles, int half) {
  const u32 four = (nibbles >> (4 * half)) & 0x07070707u;
#if defined(__AMDGCN__)
  return __builtin_amdgcn_perm(high, low, four);
#else
  u32 bytes = 0;
  for (int j = 0; j < 4; ++j) {
    const u32 index = (four >> (8 * j)) & 7u;
    bytes |= (((index < 4 ? low : high) >> (8 * (index & 3u))) & 255u) << (8 * j);
  }
  return bytes;
#endif
}
RB_FN u32 sign_bytes(u32 bits) {
  const u32 ones = spread_ones(bits);
  return (ones << 8) - ones;
}
#endif

// iq2_value() of three digits, and with a sign, which is 4 more.
RB_FN u32 iq2_bytes(u32 nibbles, int half) {
  return look_up_four(0x002b1908u, 0x00d5e7f8u, nibbles, half);
}
// eight_times() of three digits.
RB_FN u32 iq1_bytes(u32 nibbles, bool negative, int half) {
  return look_up_four(negative ? 0x0007fff7u : 0x000901f9u, 0, nibbles, half);
}
// iq3_xxs_value() and iq3_s_value() of the bytes of a word.
RB_FN u32 iq3_xxs_bytes(u32 digits) {
  return 8 * digits + 0x04040404u + (((digits + 0x01010101u) >> 2) & 0x02020202u);
}
RB_FN u32 iq3_s_bytes(u32 digits) {
  return 2 * digits + 0x01010101u;
}

// A point of a format's code book, opened.
template <class Block>
RB_FN u32 open_point(u32 point) {
  return nibbles_of_twos(point);
}
template <>
RB_FN u32 open_point<BlockIQ3_XXS>(u32 point) {
  return iq3_xxs_bytes(spread_threes(point));
}
template <>
RB_FN u32 open_point<BlockIQ3_S>(u32 point) {
  return iq3_s_bytes(spread_threes(point));
}
// Bytes of all of them; 0 without a code book.
template <class Block>
RB_FN constexpr int book_bytes() {
  return 4 * BookOf<Block>::kPoints;
}
// The code book as it is.
template <class Block>
struct ClosedBook {
  static constexpr bool kSigns = false;
  RB_FN u32 operator()(u32 point) const { return open_point<Block>(BookOf<Block>::words()[point]); }
};

// A table of signs for kernels that look them up (Book::kSigns), because spreading signs takes more
// instructions than all the rest: entry i is word(i). TQ1_0 and IQ1 have none, because their signs
// are not of single elements.
template <class Block>
struct SignTable {
  static constexpr int kEntries = 0;
  RB_FN static u32 word(u32) { return 0; }
};
// Of seven signs, for digits of a point.
struct SignsOfSeven {
  static constexpr int kEntries = 128;
  RB_FN static u32 word(u32 seven) { return 4 * nibbles_of_bits(even_signs(seven)); }
};
template <>
struct SignTable<BlockIQ2_XXS> : SignsOfSeven {};
template <>
struct SignTable<BlockIQ2_XS> : SignsOfSeven {};
template <>
struct SignTable<BlockIQ2_S> {
  static constexpr int kEntries = 256;
  RB_FN static u32 word(u32 eight) { return 4 * nibbles_of_bits(eight); }
};
// An entry of seven signs; the bit above them chooses the half of the eight elements.
template <>
struct SignTable<BlockIQ3_XXS> {
  static constexpr int kEntries = 256;
  RB_FN static u32 word(u32 entry) {
    return sign_bytes(even_signs(entry & 127u) >> (4 * (entry >> 7)));
  }
};
template <>
struct SignTable<BlockIQ3_S> {
  static constexpr int kEntries = 16;
  RB_FN static u32 word(u32 four) { return sign_bytes(four) & 0xfefefefeu; }  // values are odd
};

// The eighth signs of a word of four times seven signs, at bits 0, 7, 14 and 21: even_signs().
RB_FN u32 eighth_signs(u32 signs) {
  const u32 threes = signs ^ (signs >> 1) ^ (signs >> 2);
  return threes ^ (threes >> 4) ^ (signs >> 3);
}
// The eight signs of eight elements of such a word.
RB_FN u32 eight_signs(u32 signs, u32 eighths, int eight) {
  return ((signs >> (7 * eight)) & 127u) | (((eighths >> (7 * eight)) & 1u) << 7);
}

// `second` or `first`, written so that clang does not choose between their addresses in scratch
// memory.
RB_FN u32 one_of(u32 first, u32 second, bool choose_second) {
  return first ^ ((first ^ second) & (choose_second ? ~0u : 0u));
}
RB_FN u32 one_of(const RB_COPIED Words2& both, int index) {
  return one_of(both.words[0], both.words[1], index != 0);
}

// The codes of 32 elements of a row: load(planes, group) reads the planes, then codes(book, w)
// gives elements 4 w + 0..3 as signed bytes. book(point) is the expanded point; with kSigns,
// book.signs(entry) is the SignTable's entry.
template <class Block>
struct CodeGroup;

template <>
struct CodeGroup<BlockIQ1_S> {
  u32 points, high;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    points = read_u32(row.low + 4 * group);
    high = read_u16(row.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 point = ((points >> (8 * eight)) & 255u) | (((high >> (3 * eight)) & 7u) << 8);
    return iq1_bytes(book(point), (high & 0x8000u) != 0, w & 1);
  }
};
template <>
struct CodeGroup<BlockIQ1_M> {
  u32 points, high;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    points = read_u32(row.low + 4 * group);
    high = read_u16(row.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 four = high >> (4 * eight);
    const u32 point = ((points >> (8 * eight)) & 255u) | ((four & 7u) << 8);
    return iq1_bytes(book(point), (four & 8u) != 0, w & 1);
  }
};

template <>
struct CodeGroup<BlockIQ2_XXS> {
  u32 points, signs;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const Words2 both = read_words2(row.low + 8 * group);
    points = both.words[0];
    signs = both.words[1];
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 digits = book((points >> (8 * (w / 2))) & 255u);
    if constexpr (Book::kSigns) {
      return iq2_bytes(digits | book.signs((signs >> (7 * (w / 2))) & 127u), w & 1);
    }
    const u32 eight = eight_signs(signs, eighth_signs(signs), w / 2);
    return iq2_bytes(digits + 4 * nibbles_of_bits(eight), w & 1);
  }
};
template <>
struct CodeGroup<BlockIQ2_XS> {
  Words2 all;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    all = read_words2(row.low + 8 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 code = (one_of(all, w / 4) >> (16 * (w / 2 & 1))) & 0xffffu;
    if constexpr (Book::kSigns) {
      return iq2_bytes(book(code & 511u) | book.signs(code >> 9), w & 1);
    }
    return iq2_bytes(book(code & 511u) + 4 * nibbles_of_bits(even_signs(code >> 9)), w & 1);
  }
};
template <>
struct CodeGroup<BlockIQ2_S> {
  u32 points, signs, high;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const Words2 both = read_words2(row.low + 8 * group);
    points = both.words[0];
    signs = both.words[1];
    high = read_u8(row.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 index = ((points >> (8 * eight)) & 255u) | (((high >> (2 * eight)) & 3u) << 8);
    const u32 negative = (signs >> (8 * eight)) & 255u;
    if constexpr (Book::kSigns) return iq2_bytes(book(index) | book.signs(negative), w & 1);
    return iq2_bytes(book(index) + 4 * nibbles_of_bits(negative), w & 1);
  }
};

template <>
struct CodeGroup<BlockIQ3_XXS> {
  Words2 points;
  u32 signs;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    points = read_words2(row.low + 8 * group);
    signs = read_u32(row.high + 4 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 values = book((one_of(points, w / 4) >> (8 * (w & 3))) & 255u);
    u32 negative;
    if constexpr (Book::kSigns) {
      negative = book.signs(((signs >> (7 * (w / 2))) & 127u) | (128u * (w & 1)));
    } else {
      const u32 eight = eight_signs(signs, eighth_signs(signs), w / 2);
      negative = sign_bytes(eight >> (4 * (w & 1)));
    }
    return (values ^ negative) + (negative & 0x01010101u);
  }
};
template <>
struct CodeGroup<BlockIQ3_S> {
  Words2 points;
  u32 signs, high;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    points = read_words2(row.low + 8 * group);
    signs = read_u32(row.high + 4 * group);
    high = read_u8(row.scale + group / 8 * 12 + group % 8);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 index = ((one_of(points, w / 4) >> (8 * (w & 3))) & 255u) | (((high >> w) & 1u) << 8);
    if constexpr (Book::kSigns) return book(index) ^ book.signs((signs >> (4 * w)) & 15u);
    return book(index) ^ (sign_bytes(signs >> (4 * w)) & 0xfefefefeu);  // values are odd
  }
};

template <>
struct CodeGroup<BlockTQ1_0> {
  u32 first, second, third;  // the words that the group's eight steps lie in
  int step;                  // of the first word, 0 to 4
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    const auto words = row.scale + group / 8 * 52;
    const int begin = static_cast<int>(group % 8) * 8;
    const int word = begin / 5;
    step = begin - 5 * word;
    first = read_u32(words + 4 * word);
    second = read_u32(words + 4 * word + 4);
    third = read_u32(words + 4 * (word < 10 ? word + 2 : 12));
  }
  // Of all eight w, in fewer instructions: a step is three times the one before it.
  RB_FN void all(RB_COPIED u32 (&codes)[8]) const {
    const u32 power = power_of_3(step);
    u32 even = ((first & kBytes) * power) & kBytes;
    u32 odd = (((first >> 8) & kBytes) * power) & kBytes;
    for (int w = 0; w < 8; ++w) {
      even *= 3;
      odd *= 3;
      codes[w] = digits_of(even, odd);
      const u32 next = w < 5 ? second : third;
      const bool ends = step == (w < 5 ? 4 - w : 9 - w);
      even = ends ? next & kBytes : even & kBytes;
      odd = ends ? (next >> 8) & kBytes : odd & kBytes;
    }
  }
  template <class Book>
  RB_FN u32 codes(Book, int w) const {
    const int at = step + w;
    const u32 numbers = one_of(one_of(first, second, at >= 5), third, at >= 10);
    const u32 power = power_of_3(at < 5 ? at : at < 10 ? at - 5 : at - 10);
    return digits_of((((numbers & kBytes) * power) & kBytes) * 3,
                     ((((numbers >> 8) & kBytes) * power) & kBytes) * 3);
  }

 private:
  enum : u32 { kBytes = 0x00ff00ffu };
  RB_FN static u32 digits_of(u32 even, u32 odd) {
    const u32 digits = ((even >> 8) & 0x00030003u) | (odd & 0x03000300u);
    return (digits + 0x7f7f7f7fu) ^ 0x80808080u;  // minus 1
  }
};

// packed_codes() and packed_scale() of one format each.
#define RB_CODES_OF_GROUP(Block)                                                           \
  template <>                                                                              \
  RB_FN u32 packed_codes<Block>(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, \
                                i64 column) {                                              \
    CodeGroup<Block> group;                                                                \
    group.load(planes_of(row, at), column / 32);                                           \
    return group.codes(ClosedBook<Block>{}, static_cast<int>(column / 4 % 8));             \
  }
RB_CODES_OF_GROUP(BlockIQ1_S)
RB_CODES_OF_GROUP(BlockIQ1_M)
RB_CODES_OF_GROUP(BlockIQ2_XXS)
RB_CODES_OF_GROUP(BlockIQ2_XS)
RB_CODES_OF_GROUP(BlockIQ2_S)
RB_CODES_OF_GROUP(BlockIQ3_XXS)
RB_CODES_OF_GROUP(BlockIQ3_S)
RB_CODES_OF_GROUP(BlockTQ1_0)
#undef RB_CODES_OF_GROUP

namespace packed {

// d * (scale + 1/2) * unit of both halves of a group.
RB_FN PackedScale half_more_of(u32 d, u32 first, u32 second, float unit) {
  const float size = low_half(d);
  return PackedScale{{size * (0.5f + static_cast<float>(first)) * unit,
                      size * (0.5f + static_cast<float>(second)) * unit},
                     {-0.0f, -0.0f}};
}
// d * (2 scale + 1) / 8
RB_FN float eighth_of(float d, u32 scale) {
  return d * static_cast<float>(2 * scale + 1) * 0.125f;
}

}  // namespace packed

template <>
struct StoredScale<BlockIQ1_S> {
  u32 high, d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    high = read_u16(row.scale + 2 * group);
    d = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const {
    return packed::both(packed::eighth_of(packed::low_half(d), (high >> 12) & 7u), -0.0f);
  }
};
template <>
struct StoredScale<BlockIQ1_M> {
  u32 low, high;  // four words of 16 bits: scales of 64 elements and a part of d each
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    low = read_u32(row.super + group / 8 * 8);
    high = read_u32(row.super + group / 8 * 8 + 4);
  }
  RB_FN PackedScale value(int g) const {
    const u32 bits = ((low >> 12) & 0x000fu) | ((low >> 24) & 0x00f0u) | ((high >> 4) & 0x0f00u) |
                     ((high >> 16) & 0xf000u);
    const u32 word = one_of(low, high, g >= 4);
    const u32 scales = word >> (16 * (g / 2 & 1) + 6 * (g & 1));
    const float d = packed::low_half(bits);
    return PackedScale{
        {packed::eighth_of(d, scales & 7u), packed::eighth_of(d, (scales >> 3) & 7u)},
        {-0.0f, -0.0f}};
  }
};
// Four bits for each 16 elements.
template <int kBytes>
struct NibbleScales {
  u32 nibbles, d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    nibbles = read_u8(row.scale + kBytes * group + (kBytes - 1));
    d = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const {
    return packed::half_more_of(d, nibbles & 15u, nibbles >> 4, 0.25f);
  }
};
template <>
struct StoredScale<BlockIQ2_XS> : NibbleScales<1> {};
template <>
struct StoredScale<BlockIQ2_S> : NibbleScales<2> {};
template <>
struct StoredScale<BlockIQ3_S> {
  u32 nibbles, d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    nibbles = read_u8(row.scale + group / 8 * 12 + 8 + group % 8 / 2);
    d = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int g) const {
    const u32 scale = 1 + 2 * ((nibbles >> (4 * (g & 1))) & 15u);
    return packed::both(packed::low_half(d) * static_cast<float>(scale), -0.0f);
  }
};
template <>
struct StoredScale<BlockTQ1_0> {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u16(row.super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return packed::both(packed::low_half(d), -0.0f); }
};
template <>
struct StoredScale<BlockTQ2_0> {
  u32 d;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    d = read_u16(row.scale + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return packed::both(packed::low_half(d), -0.0f); }
};
template <>
struct StoredScale<BlockNVFP4> {
  u32 pair;
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    pair = read_u16(row.scale + 2 * group);
  }
  RB_FN PackedScale value(int) const {
    return PackedScale{
        {ue4m3_halved(static_cast<u8>(pair)), ue4m3_halved(static_cast<u8>(pair >> 8))},
        {-0.0f, -0.0f}};
  }
};

// Four bits above the signs of a group.
struct ScaleAboveSigns {
  u32 signs, d;
  RB_FN PackedScale value_of(float unit) const {
    return packed::half_more_of(d, signs >> 28, signs >> 28, unit);
  }
};
template <>
struct StoredScale<BlockIQ2_XXS> : ScaleAboveSigns {
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    signs = read_u32(row.low + 8 * group + 4);
    d = read_u16(row.scale + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return value_of(0.25f); }
};
template <>
struct StoredScale<BlockIQ3_XXS> : ScaleAboveSigns {
  template <class Planes>
  RB_FN void load(const RB_COPIED Planes& row, i64 group) {
    signs = read_u32(row.high + 4 * group);
    d = read_u16(row.scale + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return value_of(0.5f); }
};

}  // namespace shared
}  // namespace rbee
