// Products of many choices with plain weights.
#include "backends/gpu/kernels/expert_tiles.h"
#include "backends/gpu/kernels/linear_tiles.h"

namespace rbee {
namespace gpu {

template <class T, class W>
RB_DEVICE void plain_tiles(const ExpertTilesParams& p) {
  expert_tiles<T>(
      p, [&](const u8* data) { return LoadRow<W>{reinterpret_cast<const W*>(data), p.depth}; });
}

#define RB_TILES(x, X, w, W) \
  RB_KERNEL(expert_tiles_##x##_##w, kTileThreads, ExpertTilesParams, (plain_tiles<X, W>(p)))
#define RB_WEIGHTS(x, X)     \
  RB_TILES(x, X, f32, float) \
  RB_TILES(x, X, f16, f16)   \
  RB_TILES(x, X, bf16, bf16)
RB_EACH_FLOAT(RB_WEIGHTS)

}  // namespace gpu
}  // namespace rbee
