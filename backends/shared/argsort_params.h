#pragma once

#include "backends/shared/rows.h"

namespace rbee {
namespace shared {

// Sorts pieces of rows in shared memory. Slots of a block are cut into segments of `size`; segment
// g holds piece g % pieces of row g / pieces.
struct ArgsortTileParams {
  const void* x;
  u32* y;       // with one piece: the result
  void* items;  // else the sorted pieces [row][n]
  u64 rows;
  u32 n;  // elements of a row
  u32 pieces;
  u32 size;  // a power of two
  u32 descending;
  Rows x_rows, y_rows;
};

// Merges neighbouring runs of `run` items of each row.
struct ArgsortMergeParams {
  const void* from;  // [row][n]
  void* to;          // not null: [row][n]
  u32* y;            // else the result
  u64 rows;
  u32 n;
  u32 run;
  Rows y_rows;
};

}  // namespace shared
}  // namespace rbee
