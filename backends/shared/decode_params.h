#pragma once

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

// See backends/api/args_decode.h. Block b draws for row b.
struct DrawParams {
  const float* x;       // [row][n], rows x_row apart
  const float* values;  // [row][k]
  const i32* ids;       // [row][k]
  const float* sum;
  const i32* stages;     // [row][kMostStages]
  const float* amounts;  // [row][kMostStages]
  const i32* banned;     // [row][kMostBans]
  const float* numbers;  // [row][columns]
  const i32* turn;
  i32* drawn;
  i64 x_row;
  u32 n;
  u32 k;
  u32 columns;
};
constexpr u32 kMostStages = 4;
constexpr u32 kMostBans = 8;
constexpr u32 kFront = 248;

struct NextStepParams {
  i32* positions;
  i32* slots;
  i32* lengths;
  const i32* block_table;  // [row][width]
  i32* turn;
  const i32* found;
  i32* shown;  // [2][count]
  u32 rows;
  u32 width;
  u32 block_size;
  u32 count;  // of found
  u32 alone;  // 0: another launch follows, which lets integers grow
};

}  // namespace shared
}  // namespace rbee
