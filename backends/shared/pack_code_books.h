#pragma once
// Writes the planes of packed_code_books.h; pack_blocks.h includes this.

#include "backends/shared/packed_code_books.h"

namespace rbee {
namespace shared {

RB_FN u32 code_of(const RB_GLOBAL BlockNVFP4& b, int i) {
  return static_cast<u32>(nvfp4_code(b, i));
}
RB_FN void pack_scale(const RB_GLOBAL BlockTQ2_0& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  if (g == 0) write_u16(scale + group / 8 * 2, b.d);
}
RB_FN void pack_scale(const RB_GLOBAL BlockNVFP4& b, int g, RB_GLOBAL u8* scale, RB_GLOBAL u8*,
                      i64 group) {
  scale[2 * group] = b.d[2 * g];
  scale[2 * group + 1] = b.d[2 * g + 1];
}

// pack_codes(block, g, row, at, group): writes all planes of group g of the block, but for the
// super plane, as the row's group number `group`.
RB_FN void pack_codes(const RB_GLOBAL BlockIQ1_S& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  write_u32(row + 4 * group, word_of(b.qs + 4 * g));
  write_u16(row + at.scale + 2 * group, b.qh[g]);
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ1_M& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  write_u32(row + 4 * group, word_of(b.qs + 4 * g));
  write_u16(row + at.scale + 2 * group, b.qh[2 * g] | (static_cast<u32>(b.qh[2 * g + 1]) << 8));
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ2_XXS& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  write_u32(row + 8 * group, word_of(b.qs + 8 * g));
  write_u32(row + 8 * group + 4, word_of(b.qs + 8 * g + 4));
  if (g == 0) write_u16(row + at.scale + group / 8 * 2, b.d);
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ2_XS& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  for (int i = 0; i < 4; ++i) write_u16(row + 8 * group + 2 * i, b.qs[4 * g + i]);
  row[at.scale + group] = b.scales[g];
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ2_S& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  write_u32(row + 8 * group, word_of(b.qs + 4 * g));
  write_u32(row + 8 * group + 4, word_of(b.signs + 4 * g));
  row[at.scale + 2 * group] = b.qh[g];
  row[at.scale + 2 * group + 1] = b.scales[g];
}
template <class Block>
RB_FN void pack_points_of_4(const RB_GLOBAL Block& b, int g, RB_GLOBAL u8* row,
                            const RB_COPIED PackedLayout& at, i64 group) {
  write_u32(row + 8 * group, word_of(b.qs + 8 * g));
  write_u32(row + 8 * group + 4, word_of(b.qs + 8 * g + 4));
  write_u32(row + at.high + 4 * group, word_of(b.signs + 4 * g));
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ3_XXS& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  pack_points_of_4(b, g, row, at, group);
  if (g == 0) write_u16(row + at.scale + group / 8 * 2, b.d);
}
RB_FN void pack_codes(const RB_GLOBAL BlockIQ3_S& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  pack_points_of_4(b, g, row, at, group);
  RB_GLOBAL u8* record = row + at.scale + group / 8 * 12;
  record[g] = b.qh[g];
  if (g % 2 == 0) record[8 + g / 2] = b.scales[g / 2];
}
RB_FN void pack_codes(const RB_GLOBAL BlockTQ1_0& b, int g, RB_GLOBAL u8* row,
                      const RB_COPIED PackedLayout& at, i64 group) {
  if (g != 0) return;
  for (int word = 0; word < 13; ++word) {
    write_u32(row + at.scale + group / 8 * 52 + 4 * word, trit_word(b, word));
  }
}

template <class Block>
RB_FN void pack_super(const RB_GLOBAL Block& b, RB_GLOBAL u8* super, i64 group) {
  if (PackedFormat<Block>::kSuperBytes > 0) write_u16(super + group / 8 * 2, b.d);
}
RB_FN void pack_super(const RB_GLOBAL BlockIQ1_M& b, RB_GLOBAL u8* super, i64 group) {
  for (int i = 0; i < 4; ++i) write_u16(super + group / 8 * 8 + 2 * i, b.scales[i]);
}

#define RB_PACK_GROUP(Block)                                                                \
  template <>                                                                               \
  RB_FN void pack_group<Block>(const RB_GLOBAL Block* blocks, i64 group, RB_GLOBAL u8* row, \
                               const RB_COPIED PackedLayout& at) {                          \
    const int g = static_cast<int>(group % 8);                                              \
    pack_codes(blocks[group / 8], g, row, at, group);                                       \
    if (g == 0) pack_super(blocks[group / 8], row + at.super, group);                       \
  }
RB_PACK_GROUP(BlockIQ1_S)
RB_PACK_GROUP(BlockIQ1_M)
RB_PACK_GROUP(BlockIQ2_XXS)
RB_PACK_GROUP(BlockIQ2_XS)
RB_PACK_GROUP(BlockIQ2_S)
RB_PACK_GROUP(BlockIQ3_XXS)
RB_PACK_GROUP(BlockIQ3_S)
RB_PACK_GROUP(BlockTQ1_0)
#undef RB_PACK_GROUP

}  // namespace shared
}  // namespace rbee
