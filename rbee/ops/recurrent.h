#pragma once
// Layers that carry a state of a fixed size from token to token.

#include "rbee/tensor/tensor.h"

namespace rbee {

// Tokens of sequences one after another, and where each one's state is: see StateBatch.
struct SequenceStates {
  Tensor seq_starts;  // (seqs + 1) i32, first token of each sequence
  Tensor positions;   // (tokens) i32; a sequence that starts at position 0 begins with zeros
  Tensor slots;       // (seqs) i32, row of the state; -1: padding, whose results are zeros
};

// Causal convolution over each channel by itself, then silu: see CausalConvArgs.
//   x and the result: (tokens, channels), rows of x may be strided
//   weight: (taps + 1, channels) f32, oldest first
//   state: (slots, taps, channels) f32, in place: the last rows of x
Tensor causal_conv_(const Tensor& x, const Tensor& weight, Tensor& state,
                    const SequenceStates& batch);

struct DeltaRuleInputs {
  Tensor q, k;           // (tokens, key_heads, key_dim)
  Tensor v;              // (tokens, value_heads, value_dim)
  Tensor a, b;           // (tokens, value_heads): of the decay and of how much is written
  Tensor decay, a_bias;  // (value_heads) f32, contiguous
  // The key head of value head j is j % key_heads; false: j / (value_heads / key_heads).
  bool tiled = false;
};
// Gated delta rule (Yang et al. 2025, "Gated Delta Networks"): see DeltaRuleArgs.
//   state: (slots, value_heads, key_dim, value_dim) f32, in place
//   result: (tokens, value_heads, value_dim), contiguous
Tensor delta_rule_(const DeltaRuleInputs& inputs, Tensor& state, const SequenceStates& batch);

}  // namespace rbee
