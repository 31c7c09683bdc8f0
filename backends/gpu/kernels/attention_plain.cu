// Attention for any dtype, head size and stride, dense and paged: f64 operands in double, all
// others in float, by fused multiply-adds, with an online softmax (Milakov and
// Gimelshein 2018; Dao et al. 2022, algorithm 1). A block has kTile queries of one head and up to
// kColumns columns of the result. Arithmetic limits it; matrix units have kernels of their own.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention.h"

namespace rbee {
namespace gpu {

constexpr int kSide = 16;  // threads form a square: one axis queries, the other keys or columns
constexpr int kThreads = kSide * kSide;
constexpr int kChunk = 32;  // elements of a head staged at once
constexpr int kColumns = 128;
constexpr int kValueRows = 16;

// kEach: queries, and keys, of a thread.
template <class C, int kEach>
struct PlainTile {
  static constexpr int kTile = kSide * kEach;
  struct Products {
    C q[kChunk][kTile + 1];
    C k[kChunk][kTile + 1];
  };
  struct Shared {
    union {
      Products products;
      C v[kValueRows][kColumns];
    };
    C weights[kTile][kTile + 1];
  };
};

RB_DEVICE float weight_of(float below_top) {
  return fast_exp2(below_top * kLog2E);
}
RB_DEVICE double weight_of(double below_top) {
  return exp(below_top);
}

template <class C>
RB_DEVICE C minus_infinity() {
  return static_cast<C>(-infinity());
}

// products[i][j] = query ty + 16 i times key `key` + tx + 16 j, unscaled.
template <class C, int kEach>
RB_DEVICE void multiply_keys(const AttentionParams& p, const TileWork& work, i64 key, i64 end,
                             typename PlainTile<C, kEach>::Products& staged,
                             C (&products)[kEach][kEach]) {
  constexpr int kTile = PlainTile<C, kEach>::kTile;
  const int tx = static_cast<int>(thread_x()) % kSide;
  const int ty = static_cast<int>(thread_x()) / kSide;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) products[i][j] = 0;
  }
  for (int base = 0; base < p.head_dim; base += kChunk) {
    barrier();
    const int d = base + static_cast<int>(thread_x()) % kChunk;
    const int row = static_cast<int>(thread_x()) / kChunk;
    for (int r = row; r < kTile; r += kThreads / kChunk) {
      C q = 0;
      C k = 0;
      if (d < p.head_dim && r < work.count) {
        const i64 from = query_offset(p.q_at, work.span, work.head, work.first + r);
        q = load_number<C>(p.q, p.q_type, from + d * p.q_at.step);
      }
      if (d < p.head_dim && key + r < end) k = load_cached<C>(p, p.k, p.k_at, work, key + r, d);
      staged.q[d - base][r] = q;
      staged.k[d - base][r] = k;
    }
    barrier();
    for (int i = 0; i < kChunk; ++i) {
      C q[kEach];
      C k[kEach];
      for (int r = 0; r < kEach; ++r) q[r] = staged.q[i][ty + kSide * r];
      for (int r = 0; r < kEach; ++r) k[r] = staged.k[i][tx + kSide * r];
      for (int r = 0; r < kEach; ++r) {
        for (int c = 0; c < kEach; ++c) products[r][c] += q[r] * k[c];
      }
    }
  }
}

// A thread's state of a query.
template <class C>
struct PlainRow {
  C top;  // largest score so far
  C sum;  // of weights, over this thread's keys
  C out[kColumns / kSide];
};

// Turns scores of products into weights in `weights`; rescales the earlier sums to the new top.
template <class C, int kEach, int kWave>
RB_DEVICE void weigh(const AttentionParams& p, const TileWork& work, i64 key, i64 end,
                     const C (&products)[kEach][kEach],
                     C (&weights)[PlainTile<C, kEach>::kTile][PlainTile<C, kEach>::kTile + 1],
                     PlainRow<C> (&rows)[kEach]) {
  const int tx = static_cast<int>(thread_x()) % kSide;
  const int ty = static_cast<int>(thread_x()) / kSide;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = ty + kSide * i;
    const i64 query = work.first + row;
    KeyRange keys{0, 0};
    if (row < work.count) keys = seen_keys(p, work.span, query);
    C scores[kEach];
    C top = rows[i].top;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const i64 at = key + tx + kSide * j;
      const bool seen = at >= keys.first && at < keys.end && at < end;
      scores[j] = seen ? attention_score<C>(p, work.span, work.head, query, at, products[i][j])
                       : minus_infinity<C>();
      top = scores[j] > top ? scores[j] : top;
    }
    top = wave_max<kWave, kSide>(top);
    // Rows without a number so far: weights are e^-inf = 0, or NaN.
    const C base = top > minus_infinity<C>() ? top : C(0);
    const C keep = weight_of(rows[i].top - base);
    rows[i].top = top;
    rows[i].sum *= keep;
    for (int c = 0; c < kColumns / kSide; ++c) rows[i].out[c] *= keep;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const C weight = weight_of(scores[j] - base);
      rows[i].sum += weight;
      weights[row][tx + kSide * j] = weight;
    }
  }
}

template <class C, int kEach>
RB_DEVICE void add_values(const AttentionParams& p, const TileWork& work, i64 key, i64 end,
                          int column, typename PlainTile<C, kEach>::Shared& shared,
                          PlainRow<C> (&rows)[kEach]) {
  const int tx = static_cast<int>(thread_x()) % kSide;
  const int ty = static_cast<int>(thread_x()) / kSide;
  for (int base = 0; base < PlainTile<C, kEach>::kTile; base += kValueRows) {
    barrier();
    for (int i = static_cast<int>(thread_x()); i < kValueRows * kColumns; i += kThreads) {
      const int row = i / kColumns;
      const int c = i % kColumns;
      C v = 0;
      if (key + base + row < end && column + c < p.v_dim) {
        v = load_cached<C>(p, p.v, p.v_at, work, key + base + row, column + c);
      }
      shared.v[row][c] = v;
    }
    barrier();
    for (int row = 0; row < kValueRows; ++row) {
      C weights[kEach];
      for (int i = 0; i < kEach; ++i) weights[i] = shared.weights[ty + kSide * i][base + row];
#pragma unroll
      for (int c = 0; c < kColumns / kSide; ++c) {
        const C v = shared.v[row][tx + kSide * c];
        for (int i = 0; i < kEach; ++i) rows[i].out[c] += weights[i] * v;
      }
    }
  }
}

template <class C, int kEach, int kWave>
RB_DEVICE void write_rows(const AttentionParams& p, const TileWork& work, int column,
                          PlainRow<C> (&rows)[kEach]) {
  const int tx = static_cast<int>(thread_x()) % kSide;
  const int ty = static_cast<int>(thread_x()) / kSide;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    C sum = wave_sum<kWave, kSide>(rows[i].sum);
    // Rows that see no key stay zeros: their top is -infinity.
    if (p.sinks != nullptr && sum > 0) {
      sum += weight_of(static_cast<C>(p.sinks[work.head]) - rows[i].top);
    }
    const C scale = sum == 0 ? C(0) : C(1) / sum;
    if (ty + kSide * i >= work.count) continue;
    const i64 to = query_offset(p.y_at, work.span, work.head, work.first + ty + kSide * i);
#pragma unroll
    for (int c = 0; c < kColumns / kSide; ++c) {
      const int at = column + tx + kSide * c;
      if (at < p.v_dim)
        store_number<C>(p.y, p.q_type, to + at * p.y_at.step, rows[i].out[c] * scale);
    }
  }
}

template <class C, int kEach, int kWave>
RB_DEVICE void attention_plain(const AttentionParams& p) {
  using Tile = PlainTile<C, kEach>;
  RB_SHARED typename Tile::Shared shared;
  TileWork work;
  if (!find_tile(p, Tile::kTile, work)) return;
  const int column = static_cast<int>(block_z()) * kColumns;
  PlainRow<C> rows[kEach];
  for (PlainRow<C>& row : rows) {
    row.top = minus_infinity<C>();
    row.sum = 0;
    for (C& x : row.out) x = 0;
  }
  // Later queries see no keys before an earlier one's first.
  const i64 first = visible_keys(p, work.span, work.first).first;
  const i64 end = last_end(p, work);
  for (i64 key = first; key < end; key += Tile::kTile) {
    C products[kEach][kEach];
    multiply_keys<C, kEach>(p, work, key, end, shared.products, products);
    weigh<C, kEach, kWave>(p, work, key, end, products, shared.weights, rows);
    add_values<C, kEach>(p, work, key, end, column, shared, rows);
  }
  write_rows<C, kEach, kWave>(p, work, column, rows);
}

// _s32: for devices whose blocks share 32 KiB at most.
#define RB_PLAIN(lanes, wave, name, C, kEach)                           \
  RB_KERNEL(attention_plain_##name##_##wave, kThreads, AttentionParams, \
            (attention_plain<C, kEach, lanes>(p)))
RB_WAVES(RB_PLAIN, f32, float, 4)
RB_WAVES(RB_PLAIN, f32_s32, float, 2)
RB_WAVES(RB_PLAIN, f64, double, 2)

}  // namespace gpu
}  // namespace rbee
