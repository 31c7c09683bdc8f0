#pragma once

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// The type of an attention operand. A kernel that stages operands picks the conversion at run time.
// q8_0: a cache in pages (kv_page.h).
enum class AttentionType : u8 { f32, f16, bf16, f64, f8e4m3, q8_0 };

// Elements between neighbours along each axis of an operand.
struct AttentionStrides {
  i64 batch;  // paged caches: between blocks; ragged queries and outputs: 0
  i64 head;
  i64 time;
  i64 step;  // along the head
};

// attention and paged_attention: see backends/api/args_attention.h. Dense when block_table is null.
struct AttentionParams {
  const void* q;
  const void* k;
  const void* v;
  void* y;
  const float* mask;    // null: none; its step is the stride between keys
  const float* slopes;  // null: none
  const float* sinks;   // (heads); null: none
  const i32* key_ends;  // (rows of q); null: none
  AttentionStrides q_at, k_at, v_at, y_at, mask_at;
  i64 slope_step;
  const i32* seq_starts;  // paged: in which row of q each sequence begins
  const i32* kv_lens;
  const i32* block_table;
  i64 starts_step, lens_step, table_row, table_step;
  i64 batch;           // dense: entries; paged: sequences
  i64 q_len;           // dense: queries of an entry; paged: rows of q in all
  i64 kv_len;          // dense: keys of an entry; paged: the most that a row of the table can hold
  i64 window;          // 0: all
  Divider block_size;  // paged
  i32 heads, kv_heads, head_dim, v_dim;
  i32 turn_heads;  // heads whose tiles alternate, a divisor of heads
  float scale;
  float softcap;  // 0: off
  AttentionType q_type, kv_type;
  bool causal;
  // attention_decode: the most parts into which a query's keys are cut, the fewest keys of a part,
  // and, if there are several parts, where their results go: (row, head, split) sums of v_dim, and
  // (row, head, split) pairs of the largest score (in base 2) and the weights' sum. `arrivals`
  // counts the finished parts of each (row, group of heads); it is 0 before and after the kernel.
  i32 splits, least_share;
  float* partial;
  float* partial_stats;
  u32* arrivals;
};

}  // namespace shared
}  // namespace rbee
