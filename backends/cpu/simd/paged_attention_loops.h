#pragma once
// Attention over a paged cache, for prompts and single steps: the query heads that share a
// key/value head are rows of one tile. Keys are summed in parts with fixed borders, so that a row's
// bits depend only on its own sequence, not on the rest of the step. If there are few tiles,
// threads share their parts. Include after a vec header.

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/attention_tile.h"
#include "backends/cpu/simd/kv_pages.h"
// It builds on the tile.
#include "backends/cpu/simd/attention_few_rows.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kSinglePart = 8 * kKeys;  // keys of a part, for one query
constexpr int64_t kManyPart = 32 * kKeys;   // ... for several
constexpr int64_t kTilesPerThread = 3;      // fewer tiles than this have their parts shared out
constexpr int64_t kAttentionGrain = 65536;  // multiplications below which one thread does it all

RB_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
RB_INLINE int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// One sequence of the batch.
struct Sequence {
  int64_t first_token, queries, keys;
  const int32_t* blocks;    // its row of the block table
  const int32_t* key_ends;  // of its queries; null: none
};

RB_INLINE Sequence sequence_at(const PagedAttentionArgs& args, int64_t seq) {
  const auto* starts = static_cast<const int32_t*>(args.seq_starts.data);
  const int64_t step = args.seq_starts.strides[0];
  const int32_t first = starts[seq * step];
  return {.first_token = first,
          .queries = starts[(seq + 1) * step] - first,
          .keys = static_cast<const int32_t*>(args.kv_lens.data)[seq * args.kv_lens.strides[0]],
          .blocks = static_cast<const int32_t*>(args.block_table.data) +
                    seq * args.block_table.strides[0],
          .key_ends = args.key_ends.data == nullptr
                          ? nullptr
                          : static_cast<const int32_t*>(args.key_ends.data) + first};
}

// Rows are (token, head of the group), tokens outermost.
struct Work {
  Sequence seq;
  int64_t kv_head, group;
  int64_t first_row, rows;
  int64_t first_key, end_key;

  int64_t token_of(int64_t row) const { return (first_row + row) / group; }
  // The keys that a row sees.
  int64_t own_end(int64_t row) const { return seq.keys - seq.queries + 1 + token_of(row); }
  int64_t end_of(int64_t row) const {
    const int64_t own = own_end(row);
    return seq.key_ends == nullptr ? own : most(own, seq.key_ends[token_of(row)]);
  }
  int64_t first_of(int64_t row, int64_t window) const {
    return window > 0 ? most(own_end(row) - window, 0) : 0;
  }
};

RB_INLINE int64_t head_of(const Work& work, int64_t row) {
  return work.kv_head * work.group + (work.first_row + row) % work.group;
}

RB_INLINE const float* query_row(const PagedAttentionArgs& args, const Work& work, int64_t row) {
  const int64_t head = head_of(work, row);
  return static_cast<const float*>(args.q.data) +
         (work.seq.first_token + work.token_of(row)) * args.q.strides[0] + head * args.q.strides[1];
}

RB_INLINE float* result_row(const PagedAttentionArgs& args, const Work& work, int64_t row) {
  const int64_t head = head_of(work, row);
  return static_cast<float*>(args.y.data) +
         (work.seq.first_token + work.token_of(row)) * args.y.strides[0] + head * args.y.strides[1];
}

RB_INLINE void load_queries(const PagedAttentionArgs& args, const Work& work,
                            const AttentionTile& tile) {
  for (int64_t r = 0; r < work.rows; ++r) {
    const float* from = query_row(args, work, r);
    float* to = tile.q + r * tile.dim;
    for (int64_t i = 0; i < tile.dim; ++i) to[i] = from[i] * args.scale;
  }
}

// A row of a cache: KV* or Q8Row.
template <typename Row>
RB_INLINE Row cache_row(const View& cache, int64_t block, int64_t head, int64_t offset) {
  if constexpr (__is_same(Row, Q8Row)) {
    return page_row(cache, block, head, offset);
  } else {
    return static_cast<Row>(cache.data) + block * cache.strides[0] + head * cache.strides[1] +
           offset * cache.strides[2];
  }
}

// Rows [key, key + count) of a cache; the rest are null.
template <typename Row>
RB_INLINE void find_rows(const View& cache, const Work& work, int64_t key, int64_t count,
                         Row rows[kKeys]) {
  const int64_t block_size = cache.sizes[2];
  int64_t index = key / block_size, offset = key % block_size;
  for (int64_t j = 0; j < kKeys; ++j) {
    rows[j] = nullptr;
    if (j >= count) continue;
    rows[j] = cache_row<Row>(cache, work.seq.blocks[index], work.kv_head, offset);
    if (++offset < block_size) continue;
    offset = 0;
    ++index;
  }
}

// Keys and values of one tile.
template <typename Row>
struct TileRows {
  int64_t count;
  Row keys[kKeys], values[kKeys];
};

RB_INLINE const char* bytes_at(const Q8Row& row) {
  return reinterpret_cast<const char*>(row.code());
}
template <typename T>
RB_INLINE const char* bytes_at(const T* row) {
  return reinterpret_cast<const char*>(row);
}

// Finds the tile at `key` and prefetches its rows, because the processor cannot predict where they
// begin.
template <typename Row>
RB_INLINE void find_tile(const PagedAttentionArgs& args, const Work& work, int64_t key,
                         TileRows<Row>& tile) {
  tile.count = least(kKeys, work.end_key - key);
  find_rows(args.k_cache, work, key, tile.count, tile.keys);
  find_rows(args.v_cache, work, key, tile.count, tile.values);
  const int64_t dim = args.q.sizes[2];
  for (const Row* rows : {tile.keys, tile.values}) {
    for (int64_t j = 0; j < tile.count; ++j) {
      const char* end = bytes_at(rows[j] + dim);
      for (const char* at = bytes_at(rows[j]); at < end; at += 64) __builtin_prefetch(at);
    }
  }
}

// Subtracts ALiBi's term from a row's scores. `behind`: the row's place minus the first key.
RB_INLINE void add_alibi(float* scores, float slope, int64_t behind) {
  const auto first = static_cast<int>(behind);
  for (int j = 0; j < kKeys; ++j) {
    scores[j] -= slope * static_cast<float>(__builtin_abs(first - j));
  }
}

RB_INLINE void add_alibi(const PagedAttentionArgs& args, const Work& work, int64_t key,
                         float* scores) {
  const auto* slopes = static_cast<const float*>(args.alibi_slopes.data);
  for (int64_t r = 0; r < work.rows; ++r) {
    add_alibi(scores + r * kKeys, slopes[head_of(work, r)], work.own_end(r) - 1 - key);
  }
}

template <typename Row>
void attend_range(const PagedAttentionArgs& args, const Work& work, const AttentionTile& tile) {
  load_queries(args, work, tile);
  start_rows(tile, work.rows);
  // Not for a prompt's last rows, which must have the same bits as in a whole prompt.
  const bool few = work.seq.queries == 1 && takes_few_rows(tile, work.rows);
  int64_t firsts[kMaxRows], ends[kMaxRows];  // keys that a row sees; finding them takes divisions
  for (int64_t r = 0; r < work.rows; ++r) {
    firsts[r] = work.first_of(r, args.window);
    ends[r] = work.end_of(r);
  }
  TileRows<Row> found[2];  // this tile's and the next one's
  if (work.first_key < work.end_key) find_tile(args, work, work.first_key, found[0]);
  for (int64_t key = work.first_key, i = 0; key < work.end_key; key += kKeys, i = 1 - i) {
    const auto& [count, keys, values] = found[i];
    if (key + kKeys < work.end_key) find_tile(args, work, key + kKeys, found[1 - i]);
    if (few) {
      score_few_rows(tile, work.rows, keys);
    } else {
      load_keys(tile, keys);
      score_keys(tile, work.rows);
    }
    if (args.softcap != 0) cap_scores(tile.scores, work.rows, args.softcap);
    if (args.alibi_slopes.data != nullptr) add_alibi(args, work, key, tile.scores);
    for (int64_t r = 0; r < work.rows; ++r) {
      const int64_t first = firsts[r] - key;
      const int64_t end = least(ends[r] - key, count);
      if (first > 0 || end < kKeys) hide_keys(tile.scores + r * kKeys, first, end);
      update_row(tile, r);
    }
    if (few) {
      add_few_rows(tile, work.rows, values, count);
      continue;
    }
    load_values(tile, values);
    add_values(tile, work.rows);
  }
}

// The weight of a row's sink under its largest score.
RB_INLINE float sink_weight(const PagedAttentionArgs& args, const Work& work, int64_t row,
                            float top) {
  if (args.sinks.data == nullptr) return 0.0f;
  float weights[kLanes];
  store(weights, exp(splat(static_cast<const float*>(args.sinks.data)[head_of(work, row)] - top)));
  return weights[0];
}

RB_INLINE void write_result(const PagedAttentionArgs& args, const Work& work, int64_t row,
                            const float* out, float top, float total) {
  total += sink_weight(args, work, row, top);
  const float factor = total > 0 ? 1.0f / total : 0.0f;
  float* y = result_row(args, work, row);
  for (int64_t i = 0; i < args.q.sizes[2]; ++i) y[i] = out[i] * factor;
}

// The keys of a part. Parts begin at multiples of this.
RB_INLINE int64_t part_keys(const Sequence& seq) {
  return seq.queries == 1 ? kSinglePart : kManyPart;
}

// How the tiles of a batch are numbered: sequences, then key/value heads, then row tiles, then
// parts of the keys where these are shared out.
struct Plan {
  int64_t kv_heads, group;
  int64_t rows_in_tile;  // at most kMaxRows
  int64_t tiles;
  int64_t parts;  // of a tile at most
  bool shared;    // threads take parts, not tiles
};

RB_INLINE int64_t row_tiles(const Plan& plan, const Sequence& seq) {
  return (seq.queries * plan.group + plan.rows_in_tile - 1) / plan.rows_in_tile;
}

// At least as many parts as a tile of the sequence has.
RB_INLINE int64_t most_parts(const Sequence& seq, int64_t window) {
  const int64_t keys = part_keys(seq), all = (seq.keys + keys - 1) / keys;
  return window > 0 ? least(all, (window + kMaxRows + kKeys) / keys + 2) : all;
}

Plan plan_tiles(const PagedAttentionArgs& args, int64_t threads) {
  Plan plan;
  plan.kv_heads = args.k_cache.sizes[1];
  plan.group = args.q.sizes[1] / plan.kv_heads;
  plan.rows_in_tile = kMaxRows;
  plan.tiles = 0;
  plan.parts = 1;
  for (int64_t i = 0; i < args.kv_lens.sizes[0]; ++i) {
    const Sequence seq = sequence_at(args, i);
    plan.tiles += plan.kv_heads * row_tiles(plan, seq);
    plan.parts = most(plan.parts, most_parts(seq, args.window));
  }
  plan.shared = plan.parts > 1 && plan.tiles < kTilesPerThread * threads;
  return plan;
}

// The work of tile `index`, all its keys, from the first of a tile of keys on.
Work work_at(const PagedAttentionArgs& args, const Plan& plan, int64_t index) {
  Sequence seq = sequence_at(args, 0);
  for (int64_t i = 0; index >= plan.kv_heads * row_tiles(plan, seq);) {
    index -= plan.kv_heads * row_tiles(plan, seq);
    seq = sequence_at(args, ++i);
  }
  const int64_t tiles = row_tiles(plan, seq);
  const int64_t first_row = index % tiles * plan.rows_in_tile;
  Work work{.seq = seq,
            .kv_head = index / tiles,
            .group = plan.group,
            .first_row = first_row,
            .rows = least(plan.rows_in_tile, seq.queries * plan.group - first_row),
            .first_key = 0,
            .end_key = 0};
  work.first_key = work.first_of(0, args.window) / kKeys * kKeys;
  work.end_key = work.end_of(work.rows - 1);
  for (int64_t r = 0; seq.key_ends != nullptr && r < work.rows; ++r) {
    work.end_key = most(work.end_key, work.end_of(r));
  }
  return work;
}

// Part `index` of the keys; may be empty.
Work part_of(Work work, int64_t index) {
  const int64_t keys = part_keys(work.seq);
  const int64_t begin = (work.first_key / keys + index) * keys;
  work.first_key = least(most(work.first_key, begin), work.end_key);
  work.end_key = most(least(work.end_key, begin + keys), work.first_key);
  return work;
}

// The result of some parts of the keys for the rows of a tile, under each row's largest score.
struct Partial {
  float* out;    // (kMaxRows, padded_dim)
  float* top;    // (kMaxRows); kNothing: no key so far
  float* total;  // (kMaxRows)
  int64_t padded_dim;

  static int64_t floats(int64_t padded_dim) { return kMaxRows * (padded_dim + 2); }
  static Partial in(float* memory, int64_t padded_dim) {
    float* top = memory + kMaxRows * padded_dim;
    return {.out = memory, .top = top, .total = top + kMaxRows, .padded_dim = padded_dim};
  }

  void clear(int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r) top[r] = kNothing;
  }

  // Adds the next part's result for a row (Dao et al. 2023, "Flash-Decoding"). A part without keys
  // of the row changes no bit.
  void add(int64_t row, const float* part, float part_top, float part_total) const {
    float* to = out + row * padded_dim;
    if (part_top == kNothing) return;
    if (top[row] == kNothing) {
      for (int64_t i = 0; i < padded_dim; i += kLanes) store(to + i, load(part + i));
      top[row] = part_top;
      total[row] = part_total;
      return;
    }
    const float both = __builtin_fmaxf(top[row], part_top);
    const Vec own = exp(splat(top[row] - both)), others = exp(splat(part_top - both));
    for (int64_t i = 0; i < padded_dim; i += kLanes) {
      store(to + i, fma(load(part + i), others, load(to + i) * own));
    }
    float factors[2][kLanes];
    store(factors[0], own);
    store(factors[1], others);
    total[row] = total[row] * factors[0][0] + part_total * factors[1][0];
    top[row] = both;
  }
  void add(const AttentionTile& tile, int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r) {
      add(r, tile.out + r * tile.padded_dim, tile.top[r], tile.total(r));
    }
  }
  void add(const Partial& part, int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r) {
      add(r, part.out + r * padded_dim, part.top[r], part.total[r]);
    }
  }
};

void write_results(const PagedAttentionArgs& args, const Work& work, const Partial& sums) {
  for (int64_t r = 0; r < work.rows; ++r) {
    if (sums.top[r] == kNothing) {  // no key at all
      sums.total[r] = 0;
      for (int64_t i = 0; i < sums.padded_dim; ++i) sums.out[r * sums.padded_dim + i] = 0;
    }
    write_result(args, work, r, sums.out + r * sums.padded_dim, sums.top[r], sums.total[r]);
  }
}

// One part of a tile, or with `all` every part, added up.
template <typename Row>
void attend_parts(const PagedAttentionArgs& args, const Work& work, int64_t first, int64_t end,
                  const AttentionTile& tile, const Partial& sums) {
  sums.clear(work.rows);
  for (int64_t i = first; i < end; ++i) {
    const Work part = part_of(work, i);
    if (part.first_key == part.end_key) continue;
    attend_range<Row>(args, part, tile);
    sums.add(tile, work.rows);
  }
}

template <typename Row>
void attend_all(const PagedAttentionArgs& args) {
  ThreadPool& pool = ThreadPool::shared();
  const int64_t dim = args.q.sizes[2], padded = AttentionTile::padded(dim);
  const Plan plan = plan_tiles(args, pool.threads());
  const int64_t tile_floats = (AttentionTile::floats(dim) + 15) / 16 * 16;
  const int64_t sums_floats = (Partial::floats(padded) + 15) / 16 * 16;
  // For parts that threads share; else one for each thread, and one more where they are joined.
  const int64_t kept = plan.shared ? plan.tiles * plan.parts + 1 : pool.threads();
  auto* memory = reinterpret_cast<float*>(
      thread_workspace((pool.threads() * tile_floats + kept * sums_floats) * 4));
  float* sums = memory + pool.threads() * tile_floats;
  const auto sums_at = [&](int64_t i) { return Partial::in(sums + i * sums_floats, padded); };
  const int64_t steps = plan.shared ? plan.parts : 1, count = plan.tiles * steps;
  const auto part = [&](int64_t begin, int64_t end, int thread) {
    const AttentionTile tile = AttentionTile::in(memory + thread * tile_floats, dim);
    for (int64_t i = begin; i < end; ++i) {
      // The last tiles of a prompt see the most keys: they go first.
      const int64_t index = plan.tiles - 1 - i / steps;
      const Work work = work_at(args, plan, index);
      if (plan.shared) {
        const int64_t at = i % steps;
        attend_parts<Row>(args, work, at, at + 1, tile, sums_at(index * steps + at));
        continue;
      }
      attend_parts<Row>(args, work, 0, plan.parts, tile, sums_at(thread));
      write_results(args, work, sums_at(thread));
    }
  };
  const int64_t first_cost = plan.tiles > 0 ? work_at(args, plan, 0).end_key * dim * 2 : 0;
  const bool small = first_cost * args.q.sizes[0] * args.q.sizes[1] < kAttentionGrain;
  pool.parallel_for(count, small ? count : 1, part);
  for (int64_t i = 0; plan.shared && i < plan.tiles; ++i) {
    const Work work = work_at(args, plan, i);
    const Partial joined = sums_at(count);
    joined.clear(work.rows);
    for (int64_t at = 0; at < steps; ++at) joined.add(sums_at(i * steps + at), work.rows);
    write_results(args, work, joined);
  }
}

const char* refuse_paged_attention(const PagedAttentionArgs& args) {
  if (args.q.dtype != DType::f32) return "takes f32 queries";
  if (args.q.strides[2] != 1 || args.y.strides[2] != 1) return "takes heads without gaps";
  if (args.k_cache.strides[3] != 1 || args.v_cache.strides[3] != 1) {
    return "takes caches without gaps";
  }
  if (args.block_table.strides[1] != 1) return "takes a block table without gaps";
  return nullptr;
}

void run_paged_attention(const PagedAttentionArgs& args, Stream&) {
  switch (args.k_cache.dtype) {
    case DType::f16:
      return attend_all<const f16*>(args);
    case DType::bf16:
      return attend_all<const bf16*>(args);
    case DType::f8e4m3:
      return attend_all<const f8e4m3*>(args);
    case DType::q8_0:
      return attend_all<Q8Row>(args);
    default:
      return attend_all<const float*>(args);
  }
}

}  // namespace
}  // namespace rbee::cpu
