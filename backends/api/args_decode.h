#pragma once
// The work between two decode steps of a text: drawing its next token, and finding the token's
// place in the cache. With both on the device, the next step need not wait for the host.

#include "backends/api/view.h"

namespace rbee {

// One stage of sampling. A row's candidates are sorted, the likeliest first. Their weights are
// exp(s * (x - largest)); s is 1 until `temperature` divides it by its amount.
enum class DrawStage : int32_t {
  none,         // as are all after it
  temperature,  // above 0
  top_k,        // keeps the first `amount`
  top_p,        // keeps the first that reach `amount` of the mass
  min_p,        // keeps those with at least `amount` times the largest weight
};
inline constexpr int64_t kDrawStages = 4;
inline constexpr int64_t kDrawBans = 8;
// When a draw is from a whole row, only this many candidates are sorted. The others follow in the
// order of their ids, to save a full sort.
inline constexpr int64_t kDrawFront = 248;

// Draws a token for each row: of the candidates that the stages keep, the first whose cumulative
// weight exceeds the row's number times their mass; else the last. If no stage removes any, the
// candidates are the whole row, in the order above. At least one candidate stays. All views but x
// are contiguous.
struct DrawArgs {
  View x;        // (rows, n) f32, neighbours adjoin; NaN counts as -infinity, which is never drawn
  View values;   // (rows, k) f32, the largest of x, largest first; what stages leave is of these
  View ids;      // (rows, k) i32, their indices in x; k is n, or at least kDrawFront + kDrawBans
  View sum;      // (rows) f32: the mass of the row, at the scale that it is first asked for
  View stages;   // (rows, kDrawStages) i32
  View amounts;  // (rows, kDrawStages) f32
  View banned;  // (rows, kDrawBans) i32: never candidates, without duplicates; -1: none, as are all
                // after it
  View numbers;  // (rows, m) f32 in [0, 1)
  View turn;     // (1) i32: the column of `numbers`, at most m - 1
  View drawn;    // (rows) i32
};

// Turns the integer inputs of a step with one token for each sequence into those of the next step,
// and shows this step's results to the host. Does not change a sequence with a slot below 0. All
// contiguous.
struct NextStepArgs {
  View positions;    // (rows) i32, each grows by one
  View slots;        // (rows) i32: the position's row of the cache, from block_table
  View lengths;      // (rows) i32, grow by one
  View block_table;  // (rows, width) i32; a new position that is beyond it has slot -1
  int64_t block_size = 1;
  View turn;   // (1) i32, grows by one
  View found;  // (n) i32
  View shown;  // (2, n) i32 in the host's memory: row turn % 2, of `turn` before, becomes `found`
};

}  // namespace rbee
