#pragma once
// Writes the layout of packed_weight.h from the file's blocks, 32 elements at a time, so that each
// device thread writes whole words.

#include "backends/shared/packed_weight.h"

namespace rbee {
namespace shared {

// Writes words to 16-byte aligned device memory.
RB_FN void write_u32(RB_GLOBAL u8* to, u32 word) {
#if defined(__METAL_VERSION__) || defined(__CUDA_ARCH__) || defined(__AMDGCN__)
  *reinterpret_cast<RB_GLOBAL u32*>(to) = word;
#else
  __builtin_memcpy(to, &word, sizeof word);
#endif
}
RB_FN void write_u16(RB_GLOBAL u8* to, u32 half) {
#if defined(__METAL_VERSION__) || defined(__CUDA_ARCH__) || defined(__AMDGCN__)
  *reinterpret_cast<RB_GLOBAL u16*>(to) = static_cast<u16>(half);
#else
  const u16 word = static_cast<u16>(half);
  __builtin_memcpy(to, &word, sizeof word);
#endif
}

// The code of element i of a block.
template <class Block>
RB_FN u32 code_of(const RB_GLOBAL Block& b, int i) {
  return static_cast<u32>(quant_of(b, i) + PackedFormat<Block>::kOffset) & 255u;
}
RB_FN u32 code_of(const RB_GLOBAL BlockIQ4_NL& b, int i) {
  return static_cast<u32>(nibble(b.qs, i));
}
RB_FN u32 code_of(const RB_GLOBAL BlockIQ4_XS& b, int i) {
  return static_cast<u32>(nibble(b.qs + ((i >> 5) << 4), i & 31));
}
RB_FN u32 code_of(const RB_GLOBAL BlockMXFP4& b, int i) {
  return static_cast<u32>(nibble(b.qs, i));
}
RB_FN u32 code_of(const RB_GLOBAL BlockF8_G128& b, int i) {
  return b.qs[i];
}

// The low or high plane's words of elements first..first + 31 of a block: `bits` of each code, from
// bit `shift` on.
template <class Block>
RB_FN void pack_plane(const RB_GLOBAL Block& b, int first, int bits, int shift, RB_GLOBAL u8* to) {
  const u32 mask = (1u << bits) - 1;
  for (int word = 0; word < bits; ++word) {
    const int count = 32 / bits;  // elements in the word
    u32 packed = 0;
    for (int i = 0; i < count; ++i) {
      const u32 code = (code_of(b, first + word * count + i) >> shift) & mask;
      packed |= code << (8 * (i & 3) + bits * (i >> 2));
    }
    write_u32(to + 4 * word, packed);
  }
}

namespace packed {

// Pairs of 6-bit numbers as pair_of_6 reads them; first(g) and second(g) are the pair's numbers.
template <class Pair>
RB_FN void write_pairs(RB_GLOBAL u8* low, RB_GLOBAL u8* high, const RB_COPIED Pair& pair) {
  u32 tops = 0;
  for (int g = 0; g < 8; ++g) {
    const u32 both = pair.first(g) | (pair.second(g) << 6);
    low[g] = static_cast<u8>(both);
    tops |= (both >> 8) << (4 * g);
  }
  write_u32(high, tops);
}

template <class Block>
struct ScalesAndMinima {
  const RB_GLOBAL Block& b;
  RB_FN u32 first(int g) const { return static_cast<u32>(scale_min_k4(b.scales, g, false)); }
  RB_FN u32 second(int g) const { return static_cast<u32>(scale_min_k4(b.scales, g, true)); }
};
struct TwoScales {
  const RB_GLOBAL BlockQ3_K& b;
  RB_FN u32 scale(int i) const {
    const int low = (b.scales[i & 7] >> ((i >> 3) << 2)) & 15;
    const int high = (b.scales[8 + (i & 3)] >> ((i >> 2) << 1)) & 3;
    return static_cast<u32>(low | (high << 4));
  }
  RB_FN u32 first(int g) const { return scale(2 * g); }
  RB_FN u32 second(int g) const { return scale(2 * g + 1); }
};

template <class Block>
RB_FN void pack_k_record(const RB_GLOBAL Block& b, RB_GLOBAL u8* record) {
  write_u32(record, b.d | (static_cast<u32>(b.dmin) << 16));
  write_pairs(record + 4, record + 12, ScalesAndMinima<Block>{b});
}

}  // namespace packed

// pack_scale(block, g, scale, super, group): the scale of group g (of 32) of the block, written as
// the row's group number `group`. Records of 256 elements are written with their first group.
template <class Block>
RB_FN void pack_half_scale(const RB_GLOBAL Block& b, RB_GLOBAL u8* scale, i64 group) {
  write_u16(scale + 2 * group, b.d);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ4_0& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  pack_half_scale(b, scale, group);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ5_0& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  pack_half_scale(b, scale, group);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ8_0& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  pack_half_scale(b, scale, group);
}
RB_FN void pack_scale(const RB_GLOBAL BlockIQ4_NL& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  pack_half_scale(b, scale, group);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ4_1& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  write_u32(scale + 4 * group, b.d | (static_cast<u32>(b.m) << 16));
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ5_1& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  write_u32(scale + 4 * group, b.d | (static_cast<u32>(b.m) << 16));
}
RB_FN void pack_scale(const RB_GLOBAL BlockMXFP4& b, int, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  scale[group] = b.e;
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ8_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g == 0) write_u32(scale + group / 8 * 4, bits_of_float(b.d));
}
RB_FN void pack_scale(const RB_GLOBAL BlockF8_G128& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g == 0) write_u32(scale + group / 4 * 4, bits_of_float(b.d));
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ2_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8* super,
                      i64 group) {
  scale[2 * group] = b.scales[2 * g];
  scale[2 * group + 1] = b.scales[2 * g + 1];
  if (g == 0) write_u32(super + group / 8 * 4, b.d | (static_cast<u32>(b.dmin) << 16));
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ3_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8* super,
                      i64 group) {
  if (g != 0) return;
  RB_GLOBAL u8* record = scale + group / 8 * 12;
  packed::write_pairs(record, record + 8, packed::TwoScales{b});
  write_u16(super + group / 8 * 2, b.d);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ4_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g == 0) packed::pack_k_record(b, scale + group / 8 * 16);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ5_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g == 0) packed::pack_k_record(b, scale + group / 8 * 16);
}
RB_FN void pack_scale(const RB_GLOBAL BlockQ6_K& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8* super,
                      i64 group) {
  scale[2 * group] = static_cast<u8>(b.scales[2 * g]);
  scale[2 * group + 1] = static_cast<u8>(b.scales[2 * g + 1]);
  if (g == 0) write_u16(super + group / 8 * 2, b.d);
}
RB_FN void pack_scale(const RB_GLOBAL BlockIQ4_XS& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g != 0) return;
  RB_GLOBAL u8* record = scale + group / 8 * 8;
  write_u32(record, b.d | (static_cast<u32>(b.scales_h) << 16));
  for (int i = 0; i < 4; ++i) record[4 + i] = b.scales_l[i];
}

// Packs elements 32 * group + 0..31 of a row of blocks.
template <class Block>
RB_FN void pack_group(const RB_GLOBAL Block* blocks, i64 group, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at) {
  using F = PackedFormat<Block>;
  constexpr int kGroups = Block::kElements / 32;
  const RB_GLOBAL Block& b = blocks[group / kGroups];
  const int g = static_cast<int>(group % kGroups);
  pack_plane(b, 32 * g, F::kLow, 0, row + group * 4 * F::kLow);
  if (F::kHigh > 0) {
    pack_plane(b, 32 * g, F::kHigh, F::kLow, row + at.high + group * 4 * F::kHigh);
  }
  pack_scale(b, g, row + at.scale, row + at.super, group);
}

}  // namespace shared
}  // namespace rbee

#include "backends/shared/pack_code_books.h"
