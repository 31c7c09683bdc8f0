// Elements moved unchanged: copy, fill and where, one kernel for each size of element. Memory
// limits it; the host makes elements of up to 16 bytes (widen() in loop.h).
#include "backends/gpu/tile.h"
#include "backends/shared/elementwise_params.h"

namespace rbee {
namespace gpu {

struct Copy {
  template <class Y>
  RB_DEVICE void operator()(Y& y, const Y& x) const {
    y = x;
  }
};

struct Fill {
  u64 bits;
  template <class T, int kCount>
  RB_DEVICE void operator()(TileOf<T, kCount>& y) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) y.values[k] = static_cast<T>(bits);
  }
};

struct Where {
  template <class Y, class Cond>
  RB_DEVICE void operator()(Y& y, const Cond& cond, const Y& a, const Y& b) const {
#pragma unroll
    for (unsigned k = 0; k < sizeof(y.values) / sizeof(y.values[0]); ++k) {
      y.values[k] = cond.values[k] != 0 ? a.values[k] : b.values[k];
    }
  }
};

template <class T>
RB_DEVICE void copy(const CopyParams& p) {
  map_space<T, kPerThread<T>>(p.space, p.y, Copy{}, In<T>{p.x});
}
template <class T>
RB_DEVICE void fill(const FillParams& p) {
  map_space<T, kPerThread<T>>(p.space, p.y, Fill{p.bits});
}
template <class T, class Cond>
RB_DEVICE void where_of(const WhereParams& p) {
  map_space<T, kPerThread<T>>(p.space, p.y, Where{}, In<Cond>{p.cond}, In<T>{p.a}, In<T>{p.b});
}
// An integer is 0 if its bits are, whatever its sign.
template <class T>
RB_DEVICE void where(const WhereParams& p) {
  switch (p.cond_bytes) {
    case 1:
      return where_of<T, u8>(p);
    case 2:
      return where_of<T, u16>(p);
    case 4:
      return where_of<T, u32>(p);
    default:
      return where_of<T, u64>(p);
  }
}

#define RB_MOVE(bytes, T)                                         \
  RB_KERNEL(copy_##bytes, kTileThreads, CopyParams, (copy<T>(p))) \
  RB_KERNEL(fill_##bytes, kTileThreads, FillParams, (fill<T>(p))) \
  RB_KERNEL(where_##bytes, kTileThreads, WhereParams, (where<T>(p)))
RB_MOVE(b1, u8)
RB_MOVE(b2, u16)
RB_MOVE(b4, u32)
RB_MOVE(b8, u64)
RB_KERNEL(copy_b16, kTileThreads, CopyParams, (copy<Bytes16>(p)))

}  // namespace gpu
}  // namespace rbee
