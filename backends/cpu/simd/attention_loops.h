#pragma once
// Dense attention, any strides between rows: tiles of one head's queries, the heads and
// tiles shared out to threads. Include after a vec header.

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/attention_rows.h"
#include "backends/cpu/simd/attention_tile.h"
#include "backends/cpu/simd/storage.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kDenseGrain = 65536;  // multiplications below which one thread does it all
// Every tile reads and transposes all its keys, so more rows are better as long as they stay in the
// second-level cache.
constexpr int64_t kMostRows = 192;
constexpr int64_t kRowFloats = 48 * 1024;  // of queries and results together
constexpr int64_t kTilesPerThread = 4;

template <typename T>
RB_INLINE void load_queries(const HeadRows& work, const AttentionTile& tile) {
  for (int64_t r = 0; r < work.rows; ++r) {
    const T* from = work.row<T>(work.args.q, work.head, work.first + r);
    float* to = tile.q + r * tile.dim;
    for (int64_t i = 0; i < tile.dim; ++i) to[i] = load1(from + i) * work.args.scale;
  }
}

// Rows [key, key + count) of one head; the rest are null.
template <typename T>
RB_INLINE void find_rows(const HeadRows& work, const View& view, int64_t key, int64_t count,
                         const T* rows[kKeys]) {
  const int64_t head = work.kv_head();
  for (int64_t j = 0; j < kKeys; ++j) {
    rows[j] = j < count ? work.row<T>(view, head, key + j) : nullptr;
  }
}

// Prefetches a tile of rows: if heads are side by side, one head's rows are too far apart for the
// processor's own prefetching.
template <typename T>
RB_INLINE void fetch_rows(const HeadRows& work, const View& view, int64_t key, int64_t end) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t head = work.kv_head(), last = end - key < kKeys ? end : key + kKeys;
  for (; key < last; ++key) {
    const T* row = work.row<T>(view, head, key);
    for (int64_t i = 0; i < work.args.k.sizes[3]; i += kLine) __builtin_prefetch(row + i, 0, 2);
  }
}

RB_INLINE void add_mask(const HeadRows& work, int64_t r, int64_t key, int64_t count,
                        float* scores) {
  const float* mask = work.row<const float>(work.args.mask, work.head, work.first + r);
  const int64_t step = work.args.mask.strides[3];
  for (int64_t j = 0; j < count; ++j) scores[j] += mask[(key + j) * step];
}

// Scores of one tile of keys become weights, row by row.
RB_INLINE void weigh_rows(const HeadRows& work, const AttentionTile& tile, int64_t key,
                          int64_t count) {
  for (int64_t r = 0; r < work.rows; ++r) {
    float* scores = tile.scores + r * kKeys;
    if (work.args.mask.data != nullptr) add_mask(work, r, key, count, scores);
    const int64_t first = work.first_of(r) - key;
    const int64_t end = work.end_of(r) - key < count ? work.end_of(r) - key : count;
    if (first > 0 || end < kKeys) hide_keys(scores, first, end);
    update_row(tile, r);
  }
}

template <typename T>
void attend_rows(const HeadRows& work, const AttentionTile& tile) {
  load_queries<T>(work, tile);
  start_rows(tile, work.rows);
  const int64_t end = work.end_of(work.rows - 1);
  for (int64_t key = work.first_of(0); key < end; key += kKeys) {
    const int64_t count = end - key < kKeys ? end - key : kKeys;
    fetch_rows<T>(work, work.args.k, key + kKeys, end);
    fetch_rows<T>(work, work.args.v, key + kKeys, end);
    const T* rows[kKeys];
    find_rows(work, work.args.k, key, count, rows);
    load_keys(tile, rows);
    score_keys(tile, work.rows);
    if (work.args.softcap != 0) cap_scores(tile.scores, work.rows, work.args.softcap);
    weigh_rows(work, tile, key, count);
    find_rows(work, work.args.v, key, count, rows);
    load_values(tile, rows);
    add_values(tile, work.rows);
  }
  for (int64_t r = 0; r < work.rows; ++r) {
    const float total = tile.total(r);
    const float factor = total > 0 ? 1.0f / total : 0.0f;
    const float* out = tile.out + r * tile.padded_dim;
    T* y = work.row<T>(work.args.y, work.head, work.first + r);
    for (int64_t i = 0; i < tile.dim; ++i) store1(y + i, out[i] * factor);
  }
}

const char* refuse_attention(const AttentionArgs& args) {
  if (!is_storage(args.q.dtype)) return "takes f32, f16 and bf16";
  if (args.q.sizes[3] != args.v.sizes[3]) return "takes keys and values of one size";
  if (args.alibi_slopes.data != nullptr) return "has no ALiBi";
  for (const View* view : {&args.q, &args.k, &args.v, &args.y}) {
    if (view->strides[3] != 1) return "takes heads without gaps";
  }
  return nullptr;
}

// Rows of a tile, about equal for all tiles of a head. If rows see different keys, a tall tile
// would multiply many keys that most of its rows do not see.
RB_INLINE int64_t tile_height(const AttentionArgs& args, int64_t threads) {
  const int64_t queries = args.q.sizes[2], dim = args.q.sizes[3];
  const int64_t all_heads = args.q.sizes[0] * args.q.sizes[1];
  const bool same_keys = !args.causal && args.window == 0;
  const int64_t share = same_keys ? all_heads * queries / (kTilesPerThread * threads) : 0;
  const int64_t rows = within(share, kMaxRows, within(kRowFloats / (2 * dim), kMaxRows, kMostRows));
  const int64_t tiles = (queries + rows - 1) / rows;
  return (queries + tiles - 1) / tiles;
}

template <typename T>
void attend_heads(const AttentionArgs& args) {
  const int64_t queries = args.q.sizes[2], heads = args.q.sizes[1], dim = args.q.sizes[3];
  const int64_t all_heads = args.q.sizes[0] * heads;
  if (queries == 0 || all_heads == 0) return;
  ThreadPool& pool = ThreadPool::shared();
  const int64_t height = tile_height(args, pool.threads());
  const int64_t tiles = (queries + height - 1) / height;
  const int64_t tile_floats = (AttentionTile::floats(dim, height) + 15) / 16 * 16;
  auto* memory = reinterpret_cast<float*>(
      thread_workspace(pool.threads() * tile_floats * static_cast<int64_t>(sizeof(float))));
  const int64_t count = all_heads * tiles;
  const bool small = all_heads * queries * args.k.sizes[2] * dim < kDenseGrain;
  pool.parallel_for(count, small ? count : 1, [&](int64_t begin, int64_t end, int thread) {
    const AttentionTile tile = AttentionTile::in(memory + thread * tile_floats, dim, height);
    for (int64_t i = begin; i < end; ++i) {
      // The last queries may see the most keys: they go first.
      const int64_t first = (tiles - 1 - i / all_heads) * height;
      const int64_t head = i % all_heads;
      const int64_t rows = queries - first < height ? queries - first : height;
      if (rows <= 0) continue;
      attend_rows<T>({args, head / heads, head % heads, first, rows}, tile);
    }
  });
}

void run_attention(const AttentionArgs& args, Stream&) {
  with_storage(args.q.dtype, [&]<typename T>() { attend_heads<T>(args); });
}

}  // namespace
}  // namespace rbee::cpu
