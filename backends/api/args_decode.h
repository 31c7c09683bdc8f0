#pragma once
// What stands between two steps of a text: the draw of its next token, and where that belongs. With
// both on the device no host does.

#include "backends/api/view.h"

namespace rbee {

// One step of a draw. Of a row's candidates, sorted with the likeliest first, weights are
// exp(s * (x - largest)), where s is 1 until `temperature` divides it by its amount.
enum class DrawStage : int32_t {
  none,         // as are all behind it
  temperature,  // above 0
  top_k,        // the first `amount` stay
  top_p,        // the first that reach `amount` of the mass
  min_p,        // those of at least `amount` times the largest weight
};
inline constexpr int64_t kDrawStages = 4;
inline constexpr int64_t kDrawBans = 8;
// Candidates in front of a draw from a whole row. Those behind are in the order of their ids, since
// nobody wants to sort them all.
inline constexpr int64_t kDrawFront = 248;

// Draws a token for each row: of the candidates that the stages left, the first whose weight, with
// those in front, exceeds the row's number times their mass; else the last. Without a stage that
// cuts these are the whole row, in the order above. At least one stays. All contiguous but x.
struct DrawArgs {
  View x;        // (rows, n) f32, neighbours adjoin; NaN counts as -infinity, which is never drawn
  View values;   // (rows, k) f32, the largest of x, largest first; what stages leave is of these
  View ids;      // (rows, k) i32, their places in x; k is n, or at least kDrawFront + kDrawBans
  View sum;      // (rows) f32: the mass of the row, at the scale that it is first asked for
  View stages;   // (rows, kDrawStages) i32
  View amounts;  // (rows, kDrawStages) f32
  View banned;   // (rows, kDrawBans) i32: no candidates, none twice; -1: none, as are all behind it
  View numbers;  // (rows, m) f32 in [0, 1)
  View turn;     // (1) i32: the column of `numbers`, at most m - 1
  View drawn;    // (rows) i32
};

// Makes the integers of a step of one token for each sequence those of the step behind it, and
// shows the host what this one found. A sequence whose slot is below 0 stays as it is. All
// contiguous.
struct NextStepArgs {
  View positions;    // (rows) i32, grow by one
  View slots;        // (rows) i32: the position's row of the cache, from block_table
  View lengths;      // (rows) i32, grow by one
  View block_table;  // (rows, width) i32; a new position that is beyond it has slot -1
  int64_t block_size = 1;
  View turn;   // (1) i32, grows by one
  View found;  // (n) i32
  View shown;  // (2, n) i32 in the host's memory: row turn % 2, of `turn` before, becomes `found`
};

}  // namespace rbee
