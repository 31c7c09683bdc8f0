// Rewrites block-quantised weights in the layout of packed_weight.h; 32 elements a thread. Runs
// once for each weight at load.
#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/pack_blocks.h"

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

#define RB_PACK(dtype, Block) \
  RB_KERNEL(pack_weight_##dtype, kThreads, PackParams, (pack_weight<Block>(p)))
RB_EACH_BLOCK(RB_PACK)

}  // namespace gpu
}  // namespace rbee
