// y = x converted, between plain types. Limited by memory.
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"

namespace rbee {
namespace gpu {

struct Cast {
  template <class Y, class X, int kCount>
  RB_DEVICE void operator()(TileOf<Y, kCount>& y, const TileOf<X, kCount>& x) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) y.values[k] = convert<Y>(load_value(x.values[k]));
  }
};

// Four elements a thread, whatever their sizes.
template <class Y, class X>
RB_DEVICE void cast(const CopyParams& p) {
  map_space<Y, 4>(p.space, p.y, Cast{}, In<X>{p.x});
}

#define RB_CAST(from, X, to, Y) \
  RB_KERNEL(cast_##from##_##to, kTileThreads, CopyParams, (cast<Y, X>(p)))
#define RB_CAST_TO(M, from, X) \
  M(from, X, f32, float)       \
  M(from, X, f16, f16)         \
  M(from, X, bf16, bf16)       \
  M(from, X, f64, double)      \
  M(from, X, f8e4m3, f8e4m3)   \
  M(from, X, u8, u8)           \
  M(from, X, u32, u32) M(from, X, i16, i16) M(from, X, i32, i32) M(from, X, i64, i64)
#define RB_CAST_FROM(from, X) RB_CAST_TO(RB_CAST, from, X)
RB_EACH_PLAIN(RB_CAST_FROM)

}  // namespace gpu
}  // namespace rbee
