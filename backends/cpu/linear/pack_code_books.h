#pragma once
// put_block(panel, row, block) for formats of few bits, for pack.cc.

#include <cstring>

#include "backends/cpu/linear/panel.h"
#include "backends/cpu/linear/planes.h"
#include "backends/shared/code_book_blocks.h"

namespace rbee::cpu {

inline void put_block(PanelIQ1_S& panel, int row, const shared::BlockIQ1_S& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    panel.groups[g].points[row] = shared::word_of(block.qs + 4 * g);
    panel.groups[g].high[row] = block.qh[g];
  }
}

inline void put_block(PanelIQ1_M& panel, int row, const shared::BlockIQ1_M& block) {
  panel.d[row] = shared::scale_parts(block);
  for (int g = 0; g < 8; ++g) {
    PanelIQ1_M::Group& group = panel.groups[g];
    const int scales = block.scales[g / 2] >> (6 * (g % 2));
    group.points[row] = shared::word_of(block.qs + 4 * g);
    group.high[row] = static_cast<uint16_t>(block.qh[2 * g] | block.qh[2 * g + 1] << 8);
    group.scale[row] = static_cast<uint8_t>((scales & 7) | (scales >> 3 & 7) << 4);
  }
}

inline void put_block(PanelIQ2_XXS& panel, int row, const shared::BlockIQ2_XXS& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    panel.groups[g].points[row] = shared::word_of(block.qs + 8 * g);
    panel.groups[g].signs[row] = shared::word_of(block.qs + 8 * g + 4);
  }
}

inline void put_block(PanelIQ2_XS& panel, int row, const shared::BlockIQ2_XS& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    const uint16_t* codes = block.qs + 4 * g;
    for (int i = 0; i < 2; ++i) {
      panel.groups[g].codes[i][row] = codes[i] | static_cast<uint32_t>(codes[i + 2]) << 16;
    }
    panel.groups[g].scale[row] = block.scales[g];
  }
}

inline void put_block(PanelIQ2_S& panel, int row, const shared::BlockIQ2_S& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    PanelIQ2_S::Group& group = panel.groups[g];
    group.points[row] = shared::word_of(block.qs + 4 * g);
    group.signs[row] = shared::word_of(block.signs + 4 * g);
    group.high[row] = block.qh[g];
    group.scale[row] = block.scales[g];
  }
}

template <typename Group, typename Block>
void put_points_of_4(Group& group, int row, const Block& block, int g) {
  for (int i = 0; i < 2; ++i) group.points[i][row] = shared::word_of(block.qs + 8 * g + 4 * i);
  group.signs[row] = shared::word_of(block.signs + 4 * g);
}

inline void put_block(PanelIQ3_XXS& panel, int row, const shared::BlockIQ3_XXS& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) put_points_of_4(panel.groups[g], row, block, g);
}

inline void put_block(PanelIQ3_S& panel, int row, const shared::BlockIQ3_S& block) {
  panel.d[row] = block.d;
  for (int i = 0; i < 4; ++i) panel.scale[i][row] = block.scales[i];
  for (int g = 0; g < 8; ++g) {
    put_points_of_4(panel.groups[g], row, block, g);
    panel.groups[g].high[row] = block.qh[g];
  }
}

inline void put_block(PanelTQ1_0& panel, int row, const shared::BlockTQ1_0& block) {
  panel.d[row] = block.d;
  for (int w = 0; w < 13; ++w) panel.words[w][row] = shared::trit_word(block, w);
}

inline void put_block(PanelTQ2_0& panel, int row, const shared::BlockTQ2_0& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    put(panel.groups[g].low, row, bits_of(block.qs + 32 * (g / 4), 2 * (g % 4), 2));
  }
}

inline void put_block(PanelNVFP4& panel, int row, const shared::BlockNVFP4& block) {
  for (int g = 0; g < 2; ++g) {
    Quants q;
    for (int i = 0; i < kGroup; ++i) {
      q.bytes[i] = static_cast<uint8_t>(shared::nvfp4_code(block, kGroup * g + i));
    }
    put(panel.groups[g].low, row, q);
    for (int half = 0; half < 2; ++half) {
      const uint8_t d = block.d[2 * g + half];
      panel.groups[g].scale[half][row] = d == 0x7f ? 0 : d & 0x7f;
    }
  }
}

}  // namespace rbee::cpu
