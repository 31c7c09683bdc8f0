#pragma once

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

// Of a piece of a row, besides its kept items: its largest value, and its sum of exp(scale * (x -
// top)).
struct TopKPiece {
  float top;
  float sum;
};

// Where results go; steps are elements between rows and between neighbours.
struct TopKResult {
  float* values;
  i32* ids;
  float* sum;          // null: not needed
  const float* scale;  // null: 1
  i64 values_row, values_step;
  i64 ids_row, ids_step;
  i64 sum_row, scale_row;
  u32 k;
};

// Block b finds the largest of piece b % pieces of row b / pieces.
struct TopKFindParams {
  const void* x;
  i64 x_row, x_step;
  u64* items;         // [row][piece][kept], null with one piece: the result is written
  TopKPiece* ledger;  // [row][piece], null with one piece
  u32 n;
  u32 pieces;
  u32 kept;  // a power of two, at least k
  TopKResult result;
};

// Block b merges lists of `kept` sorted items: group b % groups of row b / groups.
struct TopKMergeParams {
  const u64* from;          // [row][list][kept]
  u64* to;                  // [row][group][kept], null with one group: the result is written
  const TopKPiece* ledger;  // [row][piece]
  u32 lists;
  u32 groups;
  u32 kept;
  u32 pieces;
  TopKResult result;
};

}  // namespace shared
}  // namespace rbee
