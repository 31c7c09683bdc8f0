// Rotary position embedding of heads (Su et al. 2021), appending heads to a paged cache, and both
// in one launch. A few neighbouring threads take a head; each rotates, or copies, runs of kCount
// elements. Memory limits it, at decode the launch.
#include "backends/gpu/tile.h"
#include "backends/shared/kv_page.h"
#include "backends/shared/rope_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;

// A head: head_dim elements with a stride, which is 1 where kCount > 1.
template <class T>
struct Head {
  T* data;
  i64 step;
};

// The angles of a token; without pairs for heads that are only copied.
struct Angles {
  const float* cos;
  const float* sin;
  i64 cos_step, sin_step;
  i32 pairs;
  u32 interleaved;

  RB_DEVICE Angles()
      : cos(nullptr), sin(nullptr), cos_step(0), sin_step(0), pairs(0), interleaved(0) {}
  RB_DEVICE Angles(const RopeTables& tables, i64 position)
      : cos(tables.cos + position * tables.cos_row),
        sin(tables.sin + position * tables.sin_row),
        cos_step(tables.cos_step),
        sin_step(tables.sin_step),
        pairs(tables.pairs),
        interleaved(tables.interleaved) {}
};

template <int kCount, class T>
RB_DEVICE TileOf<T, kCount> load_run(const T* from, i64 step, i32 at) {
  return load_tile<T, kCount>(In<T>{from}, at * step, kCount == 1);
}
// Rounds to T, which a separate rotation would store, and then to Y.
template <class T, class Y, int kCount>
RB_DEVICE void store_run(const Head<Y>& to, i32 at, const Compute<T> (&values)[kCount]) {
  TileOf<Y, kCount> out;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    out.values[i] = convert<Y>(load_value(store_value<T>(values[i])));
  }
  *reinterpret_cast<TileOf<Y, kCount>*>(to.data + at * to.step) = out;
}

// kCount pairs from pair `first` on. It reads all before it writes anything: x and y may
// be the same memory.
template <bool kInterleaved, int kCount, class T, class Y>
RB_DEVICE void rotate_run(const Head<const T>& x, const Head<Y>& y, const Angles& angles,
                          i32 first) {
  const i32 low = kInterleaved ? 2 * first : first;
  const i32 high = kInterleaved ? low + kCount : first + angles.pairs;
  const auto x_low = load_run<kCount>(x.data, x.step, low);
  const auto x_high = load_run<kCount>(x.data, x.step, high);
  const auto cos = load_run<kCount>(angles.cos, angles.cos_step, first);
  const auto sin = load_run<kCount>(angles.sin, angles.sin_step, first);
  // Element i of both runs, as one.
  const auto in = [&](int i) {
    return load_value(i < kCount ? x_low.values[i % kCount] : x_high.values[i % kCount]);
  };
  Compute<T> out[2][kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int at_a = kInterleaved ? 2 * i : i;
    const int at_b = kInterleaved ? 2 * i + 1 : i + kCount;
    const auto a = in(at_a), b = in(at_b);
    out[at_a / kCount][at_a % kCount] = a * cos.values[i] - b * sin.values[i];
    out[at_b / kCount][at_b % kCount] = a * sin.values[i] + b * cos.values[i];
  }
  store_run<T>(y, low, out[0]);
  store_run<T>(y, high, out[1]);
}

// This lane's part of a head: the rotated pairs, then the elements after them.
template <int kCount, class T, class Y>
RB_DEVICE void move_head(const Head<const T>& x, const Head<Y>& y, const Angles& angles,
                         i32 head_dim, u32 lane_bits) {
  const i32 rotated = angles.pairs / kCount;
  const i32 runs = rotated + (head_dim - 2 * angles.pairs) / kCount;
  for (i32 i = thread_x() & ((1u << lane_bits) - 1); i < runs; i += 1 << lane_bits) {
    if (i >= rotated) {
      const i32 at = 2 * angles.pairs + (i - rotated) * kCount;
      const auto in = load_run<kCount>(x.data, x.step, at);
      Compute<T> values[kCount];
#pragma unroll
      for (int k = 0; k < kCount; ++k) values[k] = load_value(in.values[k]);
      store_run<T>(y, at, values);
    } else if (angles.interleaved != 0) {
      rotate_run<true, kCount>(x, y, angles, i * kCount);
    } else {
      rotate_run<false, kCount>(x, y, angles, i * kCount);
    }
  }
}

template <class T, int kCount>
RB_DEVICE void rope(const RopeParams& p) {
  const i64 row = p.first + (grid_thread() >> p.lane_bits);
  if (row >= p.rows) return;
  const i64 token = divide_any(row, p.heads);
  const i64 head = row - token * p.heads.divisor;
  const i64 batch = divide_any(token, p.time);
  const i64 time = token - batch * p.time.divisor;
  const i64 position =
      p.positions == nullptr
          ? time
          : p.positions[batch * p.position_strides[0] + time * p.position_strides[1]];
  const auto offset = [&](const i64(&strides)[4]) {
    return batch * strides[0] + head * strides[1] + time * strides[2];
  };
  const Head<const T> x{static_cast<const T*>(p.x) + offset(p.x_strides), p.x_strides[3]};
  const Head<T> y{static_cast<T*>(p.y) + offset(p.y_strides), p.y_strides[3]};
  move_head<kCount>(x, y, Angles(p.tables, position), p.head_dim, p.lane_bits);
}

// A key (which = 0) or value (1) into its cache.
template <int kCount, class KV, class T>
RB_DEVICE void append_head(const AppendParams& p, const Head<const T>& x, const Angles& angles,
                           int which, i32 head, i32 slot) {
  const i64(&strides)[4] = p.cache_strides[which];
  const i64 block = slot / p.block_size;
  const i64 offset =
      block * strides[0] + head * strides[1] + (slot - block * p.block_size) * strides[2];
  const Head<KV> to{static_cast<KV*>(p.caches[which]) + offset, strides[3]};
  move_head<kCount>(x, to, angles, p.head_dim, p.lane_bits);
}

template <class T>
RB_DEVICE Head<const T> head_of(const void* data, const i64 (&strides)[3], i64 token, i32 head) {
  return {static_cast<const T*>(data) + token * strides[0] + head * strides[1], strides[2]};
}

// One of a token's heads: those of q come first, then the keys, then the values.
struct TokenHead {
  i64 token;
  i32 head;   // among its kind
  i32 which;  // 0: keys, 1: values; -1: q
};

RB_DEVICE TokenHead token_head(const AppendParams& p, i64 row) {
  const i64 token = divide_any(row, p.token_rows);
  const i32 head = static_cast<i32>(row - token * p.token_rows.divisor);
  if (head < p.heads) return {token, head, -1};
  const i32 behind = head - p.heads;
  if (behind < p.kv_heads) return {token, behind, 0};
  return {token, behind - p.kv_heads, 1};
}

// kRotate: without it there is no q, and keys are copied.
template <bool kRotate>
RB_DEVICE Angles angles_of(const AppendParams& p, const TokenHead& at) {
  if (!kRotate || at.which == 1) return Angles();
  return Angles(p.tables, p.positions[at.token * p.positions_step]);
}

template <class T>
RB_DEVICE Head<T> rotated_query(const AppendParams& p, const TokenHead& at) {
  T* to = static_cast<T*>(p.q_out) + at.token * p.q_out_strides[0] + at.head * p.q_out_strides[1];
  return {to, p.q_out_strides[2]};
}

// Rotates q, rotates keys into their cache, copies values into theirs.
template <class T, int kCount, bool kRotate>
RB_DEVICE void append(const AppendParams& p) {
  const i64 row = p.first + (grid_thread() >> p.lane_bits);
  if (row >= p.rows) return;
  const TokenHead at = token_head(p, row);
  const Angles angles = angles_of<kRotate>(p, at);
  if (at.which < 0) {
    move_head<kCount>(head_of<T>(p.q, p.q_strides, at.token, at.head), rotated_query<T>(p, at),
                      angles, p.head_dim, p.lane_bits);
    return;
  }
  const i32 slot = p.slots[at.token * p.slots_step];
  if (slot < 0) return;
  const auto x = head_of<T>(p.fresh[at.which], p.fresh_strides[at.which], at.token, at.head);
  if (p.cache_to == 0) {
    append_head<kCount, float>(p, x, angles, at.which, at.head, slot);
  } else if (p.cache_to == 1) {
    append_head<kCount, f16>(p, x, angles, at.which, at.head, slot);
  } else if (p.cache_to == 2) {
    append_head<kCount, bf16>(p, x, angles, at.which, at.head, slot);
  } else {
    append_head<kCount, f8e4m3>(p, x, angles, at.which, at.head, slot);
  }
}

// Element `at` of a head, rotated, rounded to T.
template <class T>
RB_DEVICE T rotated_element(const Head<const T>& x, const Angles& angles, i32 at) {
  if (at >= 2 * angles.pairs) return x.data[at * x.step];
  const bool interleaved = angles.interleaved != 0;
  const bool second = interleaved ? at % 2 == 1 : at >= angles.pairs;
  const i32 pair = interleaved ? at / 2 : at - (second ? angles.pairs : 0);
  const i32 low = interleaved ? 2 * pair : pair;
  const i32 high = interleaved ? low + 1 : pair + angles.pairs;
  const auto a = load_value(x.data[low * x.step]);
  const auto b = load_value(x.data[high * x.step]);
  const float cos = angles.cos[pair * angles.cos_step];
  const float sin = angles.sin[pair * angles.sin_step];
  return store_value<T>(second ? a * sin + b * cos : a * cos - b * sin);
}

// append() for q8_0 caches: 32 lanes take a group of a head, one element each. q_out is not q.
template <class T, int kWave, bool kRotate>
RB_DEVICE void append_pages(const AppendParams& p) {
  const i64 row = p.first + grid_thread() / kPageGroup;
  if (row >= p.rows) return;
  const TokenHead at = token_head(p, row);
  const Angles angles = angles_of<kRotate>(p, at);
  const i32 lane = static_cast<i32>(thread_x()) % kPageGroup;
  const i32 element = static_cast<i32>(block_y()) * kPageGroup + lane;
  if (at.which < 0) {
    const auto x = head_of<T>(p.q, p.q_strides, at.token, at.head);
    const Head<T> to = rotated_query<T>(p, at);
    to.data[element * to.step] = rotated_element(x, angles, element);
    return;
  }
  const i32 slot = p.slots[at.token * p.slots_step];
  if (slot < 0) return;
  const auto from = head_of<T>(p.fresh[at.which], p.fresh_strides[at.which], at.token, at.head);
  const float x = static_cast<float>(load_value(rotated_element(from, angles, element)));
  const PageScale scale = page_scale(wave_max<kWave, kPageGroup>(magnitude_bits(x)));
  const i64(&strides)[4] = p.cache_strides[at.which];
  const i64 block = slot / p.block_size;
  const i64 offset = slot - block * p.block_size;
  u8* page =
      static_cast<u8*>(p.caches[at.which]) + page_start(block * strides[0] + at.head * strides[1]);
  page[offset * p.head_dim + element] = scale.code(x);
  if (lane != 0) return;
  u8* scales = page + page_scales(p.block_size, p.head_dim, offset);
  reinterpret_cast<u16*>(scales)[element / kPageGroup] = scale.bits;
}

#define RB_ROPE(dtype, T) RB_KERNEL(rope_##dtype, kThreads, RopeParams, (rope<T, 1>(p)))
#define RB_APPEND(dtype, T)                                                      \
  RB_KERNEL(kv_append_##dtype, kThreads, AppendParams, (append<T, 1, false>(p))) \
  RB_KERNEL(rope_append_##dtype, kThreads, AppendParams, (append<T, 1, true>(p)))
// {kv,rope}_append_<dtype>_q8_0_<wave>
#define RB_PAGES(lanes, wave, dtype, T)                                \
  RB_KERNEL(kv_append_##dtype##_q8_0_##wave, kThreads, AppendParams,   \
            (append_pages<T, lanes, false>(p)))                        \
  RB_KERNEL(rope_append_##dtype##_q8_0_##wave, kThreads, AppendParams, \
            (append_pages<T, lanes, true>(p)))
#define RB_PAGES_OF(dtype, T) RB_WAVES(RB_PAGES, dtype, T)
RB_EACH_FLOAT_TYPE(RB_ROPE)
RB_EACH_FLOAT_TYPE(RB_APPEND)
RB_EACH_FLOAT_TYPE(RB_PAGES_OF)

#define RB_PACKED(dtype, T)                                                           \
  RB_KERNEL(rope_##dtype##_packed, kThreads, RopeParams, (rope<T, kPerThread<T>>(p))) \
  RB_KERNEL(kv_append_##dtype##_packed, kThreads, AppendParams,                       \
            (append<T, kPerThread<T>, false>(p)))                                     \
  RB_KERNEL(rope_append_##dtype##_packed, kThreads, AppendParams,                     \
            (append<T, kPerThread<T>, true>(p)))
RB_EACH_FLOAT(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
