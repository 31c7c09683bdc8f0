#pragma once
// Rotary position embedding, and appending to a paged key/value cache: see
// backends/api/args_attention.h. Strides are in elements.

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

// cos and sin: (positions, pairs) f32
struct RopeTables {
  const float* cos;
  const float* sin;
  i64 cos_row, cos_step;
  i64 sin_row, sin_step;
  i32 pairs;
  u32 interleaved;  // 0: half
};

// x, y: (batch, heads, time, head_dim)
struct RopeParams {
  const void* x;
  void* y;
  const i32* positions;  // (batch, time); null: a token's index along time
  RopeTables tables;
  i64 x_strides[4], y_strides[4], position_strides[2];
  i64 rows;   // batch * time * heads
  i64 first;  // of the launch
  Divider heads, time;
  i32 head_dim;
  u32 lane_bits;  // 2^lane_bits threads take a row
};

// rope_append, and kv_append when q is null
//   q, q_out: (tokens, heads, head_dim)   keys, values: (tokens, kv_heads, head_dim)
//   caches: (blocks, kv_heads, block_size, head_dim)
struct AppendParams {
  const void* q;
  void* q_out;
  const void* fresh[2];  // keys, values
  void* caches[2];       // the same
  const i32* slots;
  const i32* positions;
  RopeTables tables;
  i64 q_strides[3], q_out_strides[3];
  i64 fresh_strides[2][3], cache_strides[2][4];
  i64 slots_step, positions_step;
  i64 rows;            // tokens * token_rows
  i64 first;           // of the launch
  Divider token_rows;  // heads of q, keys and values
  i32 heads, kv_heads, head_dim, block_size;
  u32 lane_bits;  // 2^lane_bits threads take a row
  u32 cache_to;   // type of plain caches' elements; 0: f32, 1: f16, 2: bf16, 3: f8e4m3
};

}  // namespace shared
}  // namespace rbee
