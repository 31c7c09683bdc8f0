#pragma once
// Mat-vecs of chosen experts: the kernels of few rows, with the weight of the block's choice. The
// device reads the choice, so that a step can be captured.

#include "backends/gpu/portable.h"
#include "backends/shared/expert_params.h"

namespace rbee {
namespace gpu {

// The operands of this block's choice except x.
template <class One>
RB_DEVICE One of_choice(const ExpertMatvecParams<One>& p) {
  const i64 choice = block_y();
  const i64 expert = p.ids[choice];
  One one = p.one;
#pragma unroll
  for (int i = 0; i < kMatvecParts; ++i) {
    MatvecPart& part = one.parts[i];
    part.weight = static_cast<const u8*>(part.weight) + expert * p.expert_bytes[i];
    if (part.bias != nullptr) {
      part.bias = static_cast<const u8*>(part.bias) + expert * part.outs * p.x_bytes;
    }
    part.y = static_cast<u8*>(part.y) + choice * part.outs * p.x_bytes;
  }
  return one;
}

// The row of x of this block's choice.
template <class One>
RB_DEVICE i64 row_of_choice(const ExpertMatvecParams<One>& p) {
  return static_cast<i64>(block_y()) / p.each;
}

}  // namespace gpu
}  // namespace rbee
