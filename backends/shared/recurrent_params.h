#pragma once

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

// See backends/api/args_recurrent.h. Steps in elements.
struct StateLists {
  const i32* seq_starts;
  const i32* positions;
  const i32* slots;
};

struct CausalConvParams {
  const void* x;
  const float* weight;
  void* y;
  float* state;
  StateLists batch;
  i64 x_row, x_step, y_row, y_step;
  i64 channels;
  i32 taps;
};

// One of q, k and v, or with step 0 of a and b.
struct TokenHeads {
  const void* data;
  i64 row, head, step;
};

struct DeltaRuleParams {
  TokenHeads q, k, v, a, b;
  const float* decay;
  const float* a_bias;
  void* y;  // contiguous
  float* state;
  StateLists batch;
  i32 key_heads, heads, keys, values;
  u32 tiled;
};

}  // namespace shared
}  // namespace rbee
