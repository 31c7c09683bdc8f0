#pragma once
// Goes from one step's logits to the next step's inputs without the host.

#include "backends/api/args_decode.h"
#include "rbee/ops/top_k.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// How tokens are drawn, see DrawArgs. All contiguous.
struct Draws {
  Tensor stages;   // (rows, kDrawStages) i32, of DrawStage
  Tensor amounts;  // (rows, kDrawStages) f32
  Tensor banned;   // (rows, kDrawBans) i32; -1 after the last
  Tensor numbers;  // (rows, n) f32 in [0, 1)
};

// drawn (rows) i32 = a place in each row of x (rows, n) f32. `top_logits` are the largest of x,
// with sums: at least kDrawFront + kDrawBans of them, or all. Rows of x may be strided, their
// elements may not. turn: (1) i32, the column of `numbers`. Throws invalid_argument.
void draw_(const Tensor& drawn, const Tensor& x, const TopK& top_logits, const Draws& draws,
           const Tensor& turn);

// Integer inputs of a step that has one token of each sequence; contiguous.
struct StepIntegers {
  Tensor positions;    // (rows) i32
  Tensor slots;        // (rows) i32
  Tensor lengths;      // (rows) i32
  Tensor block_table;  // (rows, width) i32
  int64_t block_size = 1;
  Tensor turn;  // (1) i32
};

// Changes them in place to the next step's, see NextStepArgs. found: (n) i32; shown: (2, n) i32 of
// host memory that `found`'s device gave. Throws invalid_argument.
void next_step_(const StepIntegers& step, const Tensor& found, const Tensor& shown);

}  // namespace rbee
