// Elements read and written by ids along an axis. Memory limits it. Scattering is deterministic:
// one thread owns a destination and takes the ids in order, so that the last one wins and sums
// equal the reference's.
#include "backends/gpu/tile.h"
#include "backends/shared/indexing_params.h"

namespace rbee {
namespace gpu {

// The id, or -1 if it names nothing (backends/api/args_indexing.h).
RB_DEVICE i64 load_id(const void* ids, u32 type, i64 at) {
  if (type == 0) {
    const u8 id = static_cast<const u8*>(ids)[at];
    return id == 0xffu ? -1 : id;
  }
  if (type == 1) {
    const u32 id = static_cast<const u32*>(ids)[at];
    return id == 0xffffffffu ? -1 : static_cast<i64>(id);
  }
  if (type == 2) {
    const i16 id = static_cast<const i16*>(ids)[at];
    return id == 0x7fff ? -1 : id;
  }
  if (type == 3) {
    const i32 id = static_cast<const i32*>(ids)[at];
    return id == 0x7fffffff ? -1 : id;
  }
  const i64 id = static_cast<const i64*>(ids)[at];
  return id == 0x7fffffffffffffff ? -1 : id;
}

template <class T>
RB_DEVICE void gather(const GatherParams& p) {
  constexpr int kCount = kPerThread<T>;
  const u32 first = block_x() * (kTileThreads * kCount) + thread_x();
  const T* x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const u32 index = first + k * kTileThreads;
    if (index >= p.space.count) return;
    const auto offsets = strided_offsets(p.space, index);
    const i64 id = load_id(p.ids, p.id_type, offsets.at[2]);
    y[offsets.at[0]] = id < 0 ? T{} : x[offsets.at[1] + id * p.step];
  }
}

// Sums are in T's own arithmetic, integers wrap around.
template <class T, bool kAdd>
RB_DEVICE void put(T& y, T x) {
  if constexpr (!kAdd) {
    y = x;
  } else if constexpr (IsFloat<Compute<T>>::value) {
    y = store_value<T>(load_value(y) + load_value(x));
  } else {
    y = static_cast<T>(static_cast<u64>(y) + static_cast<u64>(x));
  }
}

// Many lines: a thread a line.
template <class T, bool kAdd>
RB_DEVICE void scatter_lines(const ScatterParams& p) {
  const u32 line = block_x() * kTileThreads + thread_x();
  if (line >= p.lines.count) return;
  const auto offsets = strided_offsets(p.lines, line);
  T* y = static_cast<T*>(p.y) + offsets.at[0];
  const T* src = static_cast<const T*>(p.src) + offsets.at[1];
  for (i64 i = 0; i < p.length; ++i) {
    const i64 id = load_id(p.ids, p.id_type, offsets.at[2] + i * p.ids_step);
    if (id >= 0) put<T, kAdd>(y[id * p.y_step], src[i * p.src_step]);
  }
}

// Few lines: a block a line; its threads share the destinations and read every id.
template <class T, bool kAdd>
RB_DEVICE void scatter_line(const ScatterParams& p) {
  RB_SHARED i64 ids[kTileThreads];
  const auto offsets = strided_offsets(p.lines, block_x());
  T* y = static_cast<T*>(p.y) + offsets.at[0];
  const T* src = static_cast<const T*>(p.src) + offsets.at[1];
  for (i64 first = 0; first < p.length; first += kTileThreads) {
    const i64 mine = first + thread_x();
    barrier();
    ids[thread_x()] =
        mine < p.length ? load_id(p.ids, p.id_type, offsets.at[2] + mine * p.ids_step) : -1;
    barrier();
    for (int k = 0; k < kTileThreads; ++k) {
      const i64 id = ids[k];
      if (id < 0 || static_cast<u32>(id) % kTileThreads != thread_x()) continue;
      put<T, kAdd>(y[id * p.y_step], src[(first + k) * p.src_step]);
    }
  }
}

#define RB_GATHER(size, T) RB_KERNEL(gather_##size, kTileThreads, GatherParams, (gather<T>(p)))
#define RB_SCATTER(op, suffix, T, kAdd)                                                      \
  RB_KERNEL(op##_##suffix##_lines, kTileThreads, ScatterParams, (scatter_lines<T, kAdd>(p))) \
  RB_KERNEL(op##_##suffix##_line, kTileThreads, ScatterParams, (scatter_line<T, kAdd>(p)))
#define RB_MOVES(size, T) RB_GATHER(size, T) RB_SCATTER(scatter, size, T, false)
RB_MOVES(b1, u8)
RB_MOVES(b2, u16)
RB_MOVES(b4, u32)
RB_MOVES(b8, u64)
RB_MOVES(b16, Bytes16)
#define RB_ADD(dtype, T) RB_SCATTER(scatter_add, dtype, T, true)
RB_EACH_PLAIN(RB_ADD)

}  // namespace gpu
}  // namespace rbee
