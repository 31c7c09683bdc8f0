// Rewrites block-quantised weights in the layout of packed_weight.h, once for each at load, and
// makes parts of packed weights plain, for products of many rows.
#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/pack_blocks.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;

template <class Block>
RB_DEVICE void pack_weight(const PackParams& p) {
  const PackedLayout at = packed_layout<Block>(p.in);
  const i64 groups = p.in / 32;
  const i64 count = p.rows * groups;
  for (i64 i = grid_thread(); i < count; i += grid_threads()) {
    const i64 row = i / groups;
    const Block* blocks = static_cast<const Block*>(p.blocks) + row * (p.in / Block::kElements);
    pack_group(blocks, i % groups, static_cast<u8*>(p.packed) + row * at.row_bytes, at);
  }
}

// Eight elements a thread, with dequantize()'s values rounded to T: neighbouring threads write
// neighbouring 16 bytes.
template <class T, class Block>
RB_DEVICE void unpack_run(const UnpackParams& p, u32 row, u32 column) {
  const PackedLayout at = packed_layout<Block>(p.in);
  const u8* from = static_cast<const u8*>(p.packed) + row * at.row_bytes;
  float values[kUnpackEach];
  dequantize_packed8<Block>(from, at, column, values);
  Bytes16 out;
#pragma unroll
  for (int i = 0; i < 4; ++i) out.words[i] = round_pair<T>(values[2 * i], values[2 * i + 1]);
  T* to = static_cast<T*>(p.plain) + static_cast<i64>(row) * p.in + column;
  *reinterpret_cast<Bytes16*>(to) = out;
}

template <class Block>
RB_DEVICE void unpack_weight(const UnpackParams& p) {
  const u32 runs = static_cast<u32>(p.in) / kUnpackEach;
  const u32 i = block_x() * kThreads + thread_x();
  if (i >= static_cast<u32>(p.rows) * runs) return;
  if (p.type == 0) {
    unpack_run<f16, Block>(p, i / runs, i % runs * kUnpackEach);
  } else {
    unpack_run<bf16, Block>(p, i / runs, i % runs * kUnpackEach);
  }
}

#define RB_PACK(dtype, Block)                                                   \
  RB_KERNEL(pack_weight_##dtype, kThreads, PackParams, (pack_weight<Block>(p))) \
  RB_KERNEL(unpack_weight_##dtype, kThreads, UnpackParams, (unpack_weight<Block>(p)))
RB_EACH_BLOCK(RB_PACK)
RB_PACK(f8_g128, BlockF8_G128)
RB_EACH_FEW_BITS(RB_PACK)

}  // namespace gpu
}  // namespace rbee
