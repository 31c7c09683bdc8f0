#pragma once
// Arguments of layers that carry a state of a fixed size from token to token. Sequences lie one
// after another, as in PagedAttentionArgs:
//   seq_starts: (seqs + 1) i32   first token of each sequence; last = tokens
//   positions: (tokens) i32      a sequence whose first token has position 0 begins with zeros
//   slots: (seqs) i32            row of `state` that a sequence goes on from and is left in; no two
//                                are equal; -1: padding, whose results are zeros
// All are contiguous.

#include "backends/api/view.h"

namespace rbee {

struct StateBatch {
  View seq_starts, positions, slots;
};

// A convolution over each channel of a sequence by itself, of each token and those before it:
//   y[t, c] = silu(sum of weight[j, c] * u[t - taps + j, c] over j = 0 ... taps)
// u: a sequence's tokens of x, with the state's rows before them
//   x, y: (tokens, channels), rows of x may be strided
//   weight: (taps + 1, channels) f32                      contiguous
//   state: (slots, taps, channels) f32, the last rows of u, oldest first; contiguous
struct CausalConvArgs {
  View x, weight, y, state;
  StateBatch batch;
};

// Gated delta rule (Yang et al. 2025, "Gated Delta Networks", equation 10), in f32. For each token
// and value head, with a state S (key_dim, value_dim):
//   S = exp(decay * softplus(a + a_bias)) * S
//   S = S + k * (sigmoid(b) * (v - S^T k))^T
//   y = S^T q
//   q, k: (tokens, key_heads, key_dim)   v, y: (tokens, value_heads, value_dim)
//   a, b: (tokens, value_heads)          decay, a_bias: (value_heads) f32, contiguous
//   state: (slots, value_heads, key_dim, value_dim) f32, contiguous
// The inputs have one dtype, any strides; y is contiguous. value_heads % key_heads == 0.
struct DeltaRuleArgs {
  View q, k, v, a, b, decay, a_bias, y, state;
  StateBatch batch;
  // The key head of value head j is j % key_heads; false: j / (value_heads / key_heads).
  bool tiled = false;
};

}  // namespace rbee
