#pragma once
// The steps of a tile's products on matrix instructions, or dot products if a target has none:
// threads read both operands one step ahead into registers on their way into shared memory.

#include "backends/rocm/kernels/gemm_dot.h"
#include "backends/rocm/kernels/gemm_matrix.h"

namespace rbee {
namespace gpu {

// Adds the products of all steps. Each operand has load(step), called for one step after another,
// and store(where), like OperandStage; what it loads beyond `depth` is zero or unused.
template <class Tile, class T, class X, class Weight>
RB_DEVICE void multiply_steps(typename Tile::Sums& sums, X& x, Weight& weight, int depth) {
  alignas(16) RB_SHARED u8 stages[2][2 * Tile::kOperandBytes];
  const auto load = [&](int step) {
    x.load(step);
    weight.load(step);
  };
  const auto store = [&](u8* stage) {
    x.store(stage);
    weight.store(stage + Tile::kOperandBytes);
  };
  const int steps = (depth + kStepDepth - 1) / kStepDepth;
  load(0);
  store(stages[0]);
  for (int step = 0; step < steps; ++step) {
    barrier();  // all have this step, and none reads the other stage
    load(step + 1);
    const u8* stage = stages[step % 2];
    multiply_step<Tile, T>(sums, stage, stage + Tile::kOperandBytes);
    store(stages[(step + 1) % 2]);
  }
}

}  // namespace gpu
}  // namespace rbee
