#pragma once
// Shared by the attention kernels: the addresses of a sequence's rows, the keys that a query sees,
// and the step from a product to a score.

#include "backends/gpu/instructions.h"
#include "backends/shared/attention_params.h"
#include "backends/shared/kv_page.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

constexpr float kLog2E = 1.44269504f;

// x, hidden from clang's knowledge that it never changes. Otherwise clang computes addresses of
// slopes and masks, which few calls have, before the loop and keeps them in registers.
RB_DEVICE int stays_in_loop(int x) {
  u32 words[] = {static_cast<u32>(x)};
  load_anyway(words);
  return static_cast<int>(words[0]);
}

// One batch entry or sequence.
struct AttentionSpan {
  i64 index;      // of the entry
  i64 first_row;  // ragged: its first row of q; dense: 0
  i64 q_len;
  i64 kv_len;

  // The query's place among the keys: the last query's is the last key's.
  RB_DEVICE i64 place(i64 query) const { return query + kv_len - q_len; }
};

// The keys [first, end) that a query sees.
struct KeyRange {
  i64 first;
  i64 end;
};

RB_DEVICE AttentionSpan dense_span(const AttentionParams& p, i64 entry) {
  return {entry, 0, p.q_len, p.kv_len};
}

RB_DEVICE AttentionSpan paged_span(const AttentionParams& p, i64 seq) {
  const i64 first = p.seq_starts[seq * p.starts_step];
  const i64 end = p.seq_starts[(seq + 1) * p.starts_step];
  return {seq, first, end - first, p.kv_lens[seq * p.lens_step]};
}

// The sequence that row `row` of q belongs to: the last that begins at or before it.
RB_DEVICE i64 sequence_of(const AttentionParams& p, i64 row) {
  i64 low = 0;
  i64 high = p.batch;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (p.seq_starts[middle * p.starts_step] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

RB_DEVICE KeyRange visible_keys(const AttentionParams& p, const AttentionSpan& span, i64 query) {
  const i64 place = span.place(query);
  KeyRange keys{0, span.kv_len};
  if (p.causal && place + 1 < keys.end) keys.end = place + 1 > 0 ? place + 1 : 0;
  if (p.window > 0 && place + 1 > p.window) keys.first = place + 1 - p.window;
  if (keys.first > keys.end) keys.first = keys.end;
  return keys;
}

// A block's tile of queries [first, first + count) of one head.
struct TileWork {
  AttentionSpan span;
  i64 first, count;
  i32 head, kv_head;
};

// The tile of up to `tile` queries that this block has (query_grid()); false when there is none.
// Tiles that see the most keys come first, for all alternating heads, so that short ones are left
// for the end. Ragged tiles are counted through the sequences, because only the device knows their
// lengths.
RB_DEVICE bool find_tile(const AttentionParams& p, int tile, TileWork& work) {
  const u32 turn = static_cast<u32>(p.turn_heads);
  work.head = static_cast<i32>(block_y() * turn + block_x() % turn);
  i64 index = block_x() / turn;
  work.kv_head = work.head / (p.heads / p.kv_heads);
  i64 tiles = (p.q_len + tile - 1) / tile;
  if (p.block_table == nullptr) {
    work.span = dense_span(p, index / tiles);
    index %= tiles;
  } else {
    i64 seq = 0;
    for (; seq < p.batch; ++seq) {
      work.span = paged_span(p, seq);
      tiles = (work.span.q_len + tile - 1) / tile;
      if (index < tiles) break;
      index -= tiles;
    }
    if (seq == p.batch) return false;
  }
  work.first = (tiles - 1 - index) * tile;
  work.count = work.span.q_len - work.first < tile ? work.span.q_len - work.first : tile;
  return true;
}

// visible_keys, and the keys before the query's key_ends. Tiles may ask for queries that do not
// exist.
RB_DEVICE KeyRange seen_keys(const AttentionParams& p, const AttentionSpan& span, i64 query) {
  KeyRange keys = visible_keys(p, span, query);
  if (p.key_ends == nullptr || query >= span.q_len) return keys;
  const i64 end = p.key_ends[span.first_row + query];
  if (end > keys.end) keys.end = end < span.kv_len ? end : span.kv_len;
  return keys;
}

// The end of the keys that any query of a tile sees.
RB_DEVICE i64 last_end(const AttentionParams& p, const TileWork& work) {
  // Without key_ends no query sees beyond a later one's end.
  i64 end = visible_keys(p, work.span, work.first + work.count - 1).end;
  if (p.key_ends == nullptr) return end;
  for (i64 i = 0; i < work.count; ++i) {
    const i64 own = seen_keys(p, work.span, work.first + i).end;
    if (own > end) end = own;
  }
  return end;
}

// Offset of key or value `key` in its cache or tensor, in elements.
RB_DEVICE i64 key_offset(const AttentionParams& p, const AttentionStrides& at,
                         const AttentionSpan& span, i64 kv_head, i64 key) {
  if (p.block_table == nullptr) {
    return span.index * at.batch + kv_head * at.head + key * at.time;
  }
  // Keys of one sequence are fewer than 2^31: kv_lens are i32.
  const u32 block = divide(static_cast<u32>(key), p.block_size);
  const u32 within = static_cast<u32>(key) - block * p.block_size.divisor;
  const i64 stored = p.block_table[span.index * p.table_row + block * p.table_step];
  return stored * at.batch + kv_head * at.head + within * at.time;
}

RB_DEVICE float load_value(PageCode x) {
  return to_float(x);
}

// A row of a q8_0 cache.
struct PageRow {
  const u8* codes;
  const f16* scales;

  RB_DEVICE f16 scale(u32 element) const { return scales[element / kPageGroup]; }
};

// Row `row` of page `page` among all: pages and their rows lie one after another.
RB_DEVICE PageRow page_row(const AttentionParams& p, const void* cache, i64 page, u32 row) {
  const i64 elements = static_cast<i64>(p.block_size.divisor) * p.head_dim;
  const u8* first = static_cast<const u8*>(cache) + page * page_start(elements);
  const u8* scales = first + page_scales(p.block_size.divisor, p.head_dim, row);
  return {first + row * static_cast<u32>(p.head_dim), reinterpret_cast<const f16*>(scales)};
}
RB_DEVICE PageRow page_row(const AttentionParams& p, const void* cache, const AttentionSpan& span,
                           i64 kv_head, i64 key) {
  const u32 block = divide(static_cast<u32>(key), p.block_size);
  const i64 stored = p.block_table[span.index * p.table_row + block * p.table_step];
  return page_row(p, cache, stored * p.kv_heads + kv_head,
                  static_cast<u32>(key) - block * p.block_size.divisor);
}

// Offset of a query's row in q, or of its result in y.
RB_DEVICE i64 query_offset(const AttentionStrides& at, const AttentionSpan& span, i64 head,
                           i64 query) {
  return span.index * at.batch + head * at.head + (span.first_row + query) * at.time;
}

// The score of a product of query and key (scaled), as C = float or double.
template <class C>
RB_DEVICE C attention_score(const AttentionParams& p, const AttentionSpan& span, i64 head,
                            i64 query, i64 key, C product) {
  C score = product * static_cast<C>(p.scale);
  if (p.softcap > 0) {
    const C cap = static_cast<C>(p.softcap);
    score = cap * tanh(score / cap);
  }
  if (p.slopes != nullptr) {
    const i64 behind = span.place(query) - key;
    score -= static_cast<C>(p.slopes[head * p.slope_step]) *
             static_cast<C>(behind < 0 ? -behind : behind);
  }
  if (p.mask != nullptr) {
    score += static_cast<C>(p.mask[span.index * p.mask_at.batch + head * p.mask_at.head +
                                   query * p.mask_at.time + key * p.mask_at.step]);
  }
  return score;
}

template <class C>
RB_DEVICE C load_number(const void* from, AttentionType type, i64 at) {
  switch (type) {
    case AttentionType::f32:
      return static_cast<C>(static_cast<const float*>(from)[at]);
    case AttentionType::f16:
      return static_cast<C>(load_value(static_cast<const f16*>(from)[at]));
    case AttentionType::bf16:
      return static_cast<C>(load_value(static_cast<const bf16*>(from)[at]));
    case AttentionType::f64:
      return static_cast<C>(static_cast<const double*>(from)[at]);
    default:
      return static_cast<C>(load_value(static_cast<const f8e4m3*>(from)[at]));
  }
}

template <class C>
RB_DEVICE void store_number(void* to, AttentionType type, i64 at, C x) {
  switch (type) {
    case AttentionType::f32:
      static_cast<float*>(to)[at] = static_cast<float>(x);
      break;
    case AttentionType::f16:
      static_cast<f16*>(to)[at] = store_value<f16>(static_cast<float>(x));
      break;
    case AttentionType::bf16:
      static_cast<bf16*>(to)[at] = store_value<bf16>(static_cast<float>(x));
      break;
    case AttentionType::f64:
      static_cast<double*>(to)[at] = static_cast<double>(x);
      break;
    default:
      static_cast<f8e4m3*>(to)[at] = store_value<f8e4m3>(static_cast<float>(x));
  }
}

// Element `d` of key or value `key`.
template <class C>
RB_DEVICE C load_cached(const AttentionParams& p, const void* from, const AttentionStrides& at,
                        const TileWork& work, i64 key, int d) {
  if (p.kv_type == AttentionType::q8_0) {
    const PageRow row = page_row(p, from, work.span, work.kv_head, key);
    return static_cast<C>(to_float(PageCode{row.codes[d]}) * to_float(row.scale(d)));
  }
  return load_number<C>(from, p.kv_type,
                        key_offset(p, at, work.span, work.kv_head, key) + d * at.step);
}

}  // namespace gpu
}  // namespace rbee
