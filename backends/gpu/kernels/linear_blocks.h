#pragma once
// y = x * weight^T + bias for weights of block types, packed and as files hold them.
#include "backends/gpu/kernels/linear_tiles.h"
#include "backends/gpu/kernels/load_packed.h"

namespace rbee {
namespace gpu {

template <class T, class Block>
RB_DEVICE void linear_packed(const LinearParams& p) {
  linear_tiles<T>(
      p, LoadPacked<Block>{static_cast<const u8*>(p.weight), packed_layout<Block>(p.depth)});
}
template <class T, class Block>
RB_DEVICE void linear_blocks(const LinearParams& p) {
  linear_tiles<T>(p, LoadBlock<Block>{static_cast<const Block*>(p.weight), p.depth});
}

}  // namespace gpu
}  // namespace rbee
