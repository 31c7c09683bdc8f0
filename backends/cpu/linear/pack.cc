#include "backends/cpu/linear/pack.h"

#include <algorithm>
#include <cstring>

#include "backends/api/dispatch_blocks.h"
#include "backends/cpu/linear/pack_code_books.h"
#include "backends/cpu/linear/panel.h"
#include "backends/cpu/linear/planes.h"
#include "backends/cpu/region_heap.h"
#include "backends/cpu/thread_pool.h"
#include "backends/shared/quant_blocks.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

// Packed weights of this many bytes ask for huge pages; smaller ones lie in the heap.
constexpr int64_t kHugeFrom = 64 * 1024;

// put_block(panel, row, block): one block of one row.

void put_block(PanelQ4_0& panel, int row, const shared::BlockQ4_0& block) {
  panel.d[row] = block.d;
  put(panel.low, row, nibbles_of(block.qs));
}

void put_block(PanelQ4_1& panel, int row, const shared::BlockQ4_1& block) {
  panel.d[row] = block.d;
  panel.m[row] = block.m;
  put(panel.low, row, nibbles_of(block.qs));
}

void put_block(PanelQ5_0& panel, int row, const shared::BlockQ5_0& block) {
  panel.d[row] = block.d;
  put(panel.low, row, nibbles_of(block.qs));
  put(panel.high, row, single_bits_of(block.qh));
}

void put_block(PanelQ5_1& panel, int row, const shared::BlockQ5_1& block) {
  panel.d[row] = block.d;
  panel.m[row] = block.m;
  put(panel.low, row, nibbles_of(block.qs));
  put(panel.high, row, single_bits_of(block.qh));
}

void put_block(PanelQ8_0& panel, int row, const shared::BlockQ8_0& block) {
  panel.d[row] = block.d;
  Quants q;
  std::memcpy(q.bytes, block.qs, sizeof(q.bytes));
  put(panel.bytes, row, q);
}

void put_block(PanelIQ4_NL& panel, int row, const shared::BlockIQ4_NL& block) {
  panel.d[row] = block.d;
  put(panel.low, row, nibbles_of(block.qs));
}

void put_block(PanelMXFP4& panel, int row, const shared::BlockMXFP4& block) {
  panel.e[row] = block.e;
  put(panel.low, row, nibbles_of(block.qs));
}

void put_block(PanelQ2_K& panel, int row, const shared::BlockQ2_K& block) {
  panel.d[row] = block.d;
  panel.dmin[row] = block.dmin;
  for (int g = 0; g < 8; ++g) {
    PanelQ2_K::Group& group = panel.groups[g];
    for (int half = 0; half < 2; ++half) {
      group.scale_min[half][row] = block.scales[2 * g + half];
    }
    put(group.low, row, bits_of(block.qs + 32 * (g / 4), 2 * (g % 4), 2));
  }
}

// The 6-bit scale of 16 elements, minus 32.
int8_t scale_of_16(const shared::BlockQ3_K& block, int sixteen) {
  shared::BlockQ3_K unit = block;
  unit.d = 0x3c00;  // 1.0: what remains is the integer
  return static_cast<int8_t>(shared::scale_of(unit, sixteen).d);
}

void put_block(PanelQ3_K& panel, int row, const shared::BlockQ3_K& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    PanelQ3_K::Group& group = panel.groups[g];
    for (int half = 0; half < 2; ++half) {
      group.scale[half][row] = scale_of_16(block, 2 * g + half);
    }
    put(group.low, row, bits_of(block.qs + 32 * (g / 4), 2 * (g % 4), 2));
    put(group.high, row, bits_of(block.hmask, g, 1));
  }
}

template <typename Panel, typename Block>
void put_scales_k4(Panel& panel, int row, const Block& block) {
  panel.d[row] = block.d;
  panel.dmin[row] = block.dmin;
  for (int g = 0; g < 8; ++g) {
    panel.groups[g].scale[row] = static_cast<uint8_t>(shared::scale_min_k4(block.scales, g, false));
    panel.groups[g].min[row] = static_cast<uint8_t>(shared::scale_min_k4(block.scales, g, true));
  }
}

void put_block(PanelQ4_K& panel, int row, const shared::BlockQ4_K& block) {
  put_scales_k4(panel, row, block);
  for (int g = 0; g < 8; ++g) {
    put(panel.groups[g].low, row, bits_of(block.qs + 32 * (g / 2), 4 * (g % 2), 4));
  }
}

void put_block(PanelQ5_K& panel, int row, const shared::BlockQ5_K& block) {
  put_scales_k4(panel, row, block);
  for (int g = 0; g < 8; ++g) {
    put(panel.groups[g].low, row, bits_of(block.qs + 32 * (g / 2), 4 * (g % 2), 4));
    put(panel.groups[g].high, row, bits_of(block.qh, g, 1));
  }
}

void put_block(PanelQ6_K& panel, int row, const shared::BlockQ6_K& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    PanelQ6_K::Group& group = panel.groups[g];
    for (int half = 0; half < 2; ++half) group.scale[half][row] = block.scales[2 * g + half];
    const int part = g / 4, j = g % 4;  // of 128 elements; of 32 within
    put(group.low, row, bits_of(block.ql + 64 * part + 32 * (j % 2), 4 * (j / 2), 4));
    put(group.high, row, bits_of(block.qh + 32 * part, 2 * j, 2));
  }
}

void put_block(PanelQ8_K& panel, int row, const shared::BlockQ8_K& block) {
  panel.d[row] = block.d;
  for (int g = 0; g < 8; ++g) {
    Quants q;
    std::memcpy(q.bytes, block.qs + g * kGroup, sizeof(q.bytes));
    put(panel.groups[g].bytes, row, q);
  }
}

void put_block(PanelIQ4_XS& panel, int row, const shared::BlockIQ4_XS& block) {
  panel.d[row] = block.d;
  shared::BlockIQ4_XS unit = block;
  unit.d = 0x3c00;  // 1.0: what remains of a scale is the integer
  for (int g = 0; g < 8; ++g) {
    panel.groups[g].scale[row] = static_cast<int8_t>(shared::scale_of(unit, g).d);
    put(panel.groups[g].low, row, nibbles_of(block.qs + 16 * g));
  }
}

void put_block(PanelF8_G128& panel, int row, const shared::BlockF8_G128& block) {
  panel.d[row] = block.d;
  for (int k = 0; k < shared::BlockF8_G128::kElements; ++k) {
    const int i = k % 4;
    panel.steps[k / 4][32 * (i % 2) + 2 * row + i / 2] = block.qs[k];
  }
}

// Panel `index` of a block-quantised weight.
template <typename Panel, typename Block>
void pack_blocks(const View& weight, int64_t index, std::byte* out) {
  const int64_t blocks = weight.size(1) / Block::kElements;
  const int64_t first = index * kPanelRows;
  const int rows = static_cast<int>(std::min<int64_t>(kPanelRows, weight.size(0) - first));
  auto* panels = reinterpret_cast<Panel*>(out);
  if (rows < kPanelRows) std::memset(out, 0, static_cast<size_t>(blocks) * sizeof(Panel));
  const Block* row_blocks = weight.as<Block>() + first * blocks;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int r = 0; r < rows; ++r) put_block(panels[b], r, row_blocks[r * blocks + b]);
  }
}

// Panel `index` of a float weight: runs of `kRun` inputs of one row stay together.
template <typename T, int kRun>
void pack_floats(const View& weight, int64_t index, std::byte* out) {
  const int64_t in = weight.size(1), first = index * kPanelRows;
  const int64_t rows = std::min<int64_t>(kPanelRows, weight.size(0) - first);
  auto* values = reinterpret_cast<T*>(out);
  if (rows < kPanelRows || in % kRun != 0) {
    std::memset(out, 0, static_cast<size_t>(panel_bytes(weight.dtype, in)));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = weight.as<T>() + (first + r) * in;
    for (int64_t k = 0; k < in; ++k) {
      values[(k / kRun * kPanelRows + r) * kRun + k % kRun] = row[k];
    }
  }
}

struct PackedType {
  int64_t inputs;  // of one record
  int64_t bytes;   // of one record
  void (*pack)(const View& weight, int64_t index, std::byte* out);
};

// The panel of each block.
template <typename Block>
struct PanelOf;
#define RB_PANEL(name, Name, ...)       \
  template <>                           \
  struct PanelOf<shared::Block##Name> { \
    using Type = Panel##Name;           \
    static_assert(alignof(Type) <= 4);  \
  };
RB_BLOCK_TYPES(RB_PANEL)
#undef RB_PANEL

// For types that are not packed, `pack` is null.
PackedType packed_type(DType dtype) {
  if (dtype == DType::f32) return {1, 64, &pack_floats<uint32_t, 1>};
  if (dtype == DType::f16) return {1, 32, &pack_floats<uint16_t, 1>};
  if (dtype == DType::bf16) return {2, 64, &pack_floats<uint16_t, 2>};
  if (!is_quantized(dtype)) return {};
  PackedType type;
  dispatch_blocks("pack_weight", dtype, [&]<typename Block>() {
    using Panel = typename PanelOf<Block>::Type;
    type = {Block::kElements, sizeof(Panel), &pack_blocks<Panel, Block>};
  });
  return type;
}

}  // namespace

int64_t packed_inputs(DType dtype, int64_t in) {
  return dtype == DType::bf16 ? (in + 1) / 2 * 2 : in;
}

int64_t panel_bytes(DType dtype, int64_t in) {
  const PackedType type = packed_type(dtype);
  return type.pack == nullptr ? 0 : packed_inputs(dtype, in) / type.inputs * type.bytes;
}

void pack_panels(const View& weight, std::byte* packed) {
  const PackedType type = packed_type(weight.dtype);
  RB_ASSERT(type.pack != nullptr);
  const int64_t bytes = panel_bytes(weight.dtype, weight.size(1));
  const int64_t panels = (weight.size(0) + kPanelRows - 1) / kPanelRows;
  if (panels * bytes >= kHugeFrom) want_huge_pages(packed, static_cast<size_t>(panels * bytes));
  ThreadPool::shared().parallel_for(panels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) type.pack(weight, p, packed + p * bytes);
  });
}

}  // namespace rbee::cpu
