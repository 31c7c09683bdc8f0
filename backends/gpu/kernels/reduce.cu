// y = sum, smallest or largest over axes, or their place. Groups of `lanes` threads reduce an
// output and merge their states in shared memory, always in the same order. Memory limits it.
#include "backends/gpu/tile.h"
#include "backends/shared/reduce_params.h"

namespace rbee {
namespace gpu {

// Integers wrap around: their low bits are exact in u64.
template <class T, bool kFloat = IsFloat<Compute<T>>::value>
struct SumOf {
  using type = u64;
};
template <class T>
struct SumOf<T, true> {
  using type = Compute<T>;
};

template <class T>
struct SumState {
  using Sum = typename SumOf<T>::type;
  using Element = T;
  Sum value;

  RB_DEVICE void clear(u32) { value = 0; }
  RB_DEVICE void take(T x, u32) { value += static_cast<Sum>(load_value(x)); }
  RB_DEVICE void join(const SumState& other) { value += other.value; }
  RB_DEVICE void write(void* y, i64 at) const { static_cast<T*>(y)[at] = convert<T>(value); }
};

constexpr u32 kNowhere = 0xffffffffu;

// NaN is smaller and larger than every number; the first of equals wins.
template <class T>
struct FindState {
  using Element = T;
  Compute<T> value;
  u32 place;
  u32 op;

  RB_DEVICE void clear(u32 reduce_op) {
    value = 0;
    place = kNowhere;
    op = reduce_op;
  }
  RB_DEVICE bool largest() const { return op == 2 || op == 4; }
  RB_DEVICE bool loses_to(Compute<T> other, u32 at) const {
    if (place == kNowhere) return true;
    const bool here_nan = value != value, other_nan = other != other;
    if (here_nan || other_nan) return here_nan == other_nan ? at < place : other_nan;
    if (value == other) return at < place;
    return largest() ? other > value : other < value;
  }
  RB_DEVICE void take(T x, u32 at) {
    const Compute<T> other = load_value(x);
    if (!loses_to(other, at)) return;
    value = other;
    place = at;
  }
  RB_DEVICE void join(const FindState& other) {
    if (other.place == kNowhere || !loses_to(other.value, other.place)) return;
    value = other.value;
    place = other.place;
  }
  RB_DEVICE void write(void* y, i64 at) const {
    if (op >= 3) {
      static_cast<u32*>(y)[at] = place;
    } else {
      static_cast<T*>(y)[at] = store_value<T>(value);
    }
  }
};

// Merges the states of `lanes` threads that are `apart`; lane 0 gets all. All threads call it.
template <class State>
RB_DEVICE void join_lanes(State& state, u32 lane, u32 lanes, u32 apart) {
  RB_SHARED State slots[kTileThreads];
  slots[thread_x()] = state;
  for (u32 half = lanes / 2; half > 0; half /= 2) {
    barrier();
    if (lane >= half) continue;
    state.join(slots[thread_x() + half * apart]);
    slots[thread_x()] = state;
  }
}

template <class State>
RB_DEVICE void gather_slice(const ReduceParams& p, State& state, i64 from, u32 lane) {
  using T = typename State::Element;
  const T* x = static_cast<const T*>(p.x) + from;
  const u32 begin = block_y() * p.slice;
  const u32 end = p.reduced.count - begin < p.slice ? p.reduced.count : begin + p.slice;
  const u32 place = static_cast<u32>(p.first);
  if (p.reduced.rank <= 1) {
    const i64 stride = p.reduced.strides[0][0];
#pragma unroll 4
    for (u32 i = begin + lane; i < end; i += p.lanes) state.take(x[i * stride], place + i);
    return;
  }
  for (u32 i = begin + lane; i < end; i += p.lanes) {
    state.take(x[strided_offsets(p.reduced, i).at[0]], place + i);
  }
}

template <class State>
RB_DEVICE void reduce(const ReduceParams& p) {
  const u32 outputs = kTileThreads / p.lanes;
  const bool adjoining = p.apart == 1;
  const u32 lane = adjoining ? thread_x() % p.lanes : thread_x() / outputs;
  const u32 output =
      block_x() * outputs + (adjoining ? thread_x() / p.lanes : thread_x() % outputs);
  const bool exists = output < p.kept.count;
  const auto offsets = strided_offsets(p.kept, exists ? output : 0);
  State state;
  state.clear(p.op);
  if (exists) gather_slice(p, state, offsets.at[1], lane);
  join_lanes(state, lane, p.lanes, p.apart);
  if (!exists || lane != 0) return;
  if (p.partial == nullptr) {
    state.write(p.y, offsets.at[0]);
  } else {
    const u64 row = p.first_slice + block_y();
    static_cast<State*>(p.partial)[row * p.kept.count + output] = state;
  }
}

template <class State>
RB_DEVICE void finish(const ReduceFinishParams& p) {
  const u32 lane = thread_x() % p.lanes;
  const u32 output = (block_x() * kTileThreads + thread_x()) / p.lanes;
  const bool exists = output < p.kept.count;
  State state;
  state.clear(p.op);
  if (exists) {
    const State* partial = static_cast<const State*>(p.partial) + output;
    for (u32 i = lane; i < p.slices; i += p.lanes) {
      state.join(partial[static_cast<u64>(i) * p.kept.count]);
    }
  }
  join_lanes(state, lane, p.lanes, 1);
  if (exists && lane == 0) state.write(p.y, strided_offsets(p.kept, output).at[0]);
}

#define RB_REDUCE(dtype, T)                                                                        \
  RB_KERNEL(reduce_sum_##dtype, kTileThreads, ReduceParams, (reduce<SumState<T>>(p)))              \
  RB_KERNEL(reduce_find_##dtype, kTileThreads, ReduceParams, (reduce<FindState<T>>(p)))            \
  RB_KERNEL(reduce_sum_finish_##dtype, kTileThreads, ReduceFinishParams, (finish<SumState<T>>(p))) \
  RB_KERNEL(reduce_find_finish_##dtype, kTileThreads, ReduceFinishParams, (finish<FindState<T>>(p)))
RB_EACH_PLAIN(RB_REDUCE)

}  // namespace gpu
}  // namespace rbee
