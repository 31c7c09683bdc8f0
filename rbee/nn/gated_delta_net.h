#pragma once

#include <vector>

#include "rbee/nn/attention.h"
#include "rbee/nn/linear.h"
#include "rbee/ops/recurrent.h"

namespace rbee::nn {

struct GatedDeltaNetSpec {
  int64_t dim = 0;
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;      // of a head
  int64_t value_dim = 0;
  int64_t taps = 0;   // of the convolution, without the token's own
  float eps = 1e-6f;  // of the norm
  // The key head of value head j is j % key_heads; false: j / (value_heads / key_heads).
  bool tiled = false;

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  StateShape state() const {
    return {.taps = taps,
            .channels = 2 * keys() + values(),
            .heads = value_heads,
            .key_dim = key_dim,
            .value_dim = value_dim};
  }
};

// Linear attention by the gated delta rule (Yang et al. 2025, "Gated Delta Networks", figure 1) as
// Qwen3-Next has it: queries, keys and values through a short convolution, and a norm times silu(z)
// behind the rule.
class GatedDeltaNet {
 public:
  // Takes attn_qkv and attn_gate (z), or ssm_in, which has the rows of q, k, v and z of each key
  // head; ssm_beta and ssm_alpha, or ssm_ba, likewise; ssm_conv1d, ssm_a, ssm_dt, ssm_norm and
  // ssm_out of a layer. Adapters change none of these: files may have the rows in another order.
  // Throws unsupported for a rank of a group.
  GatedDeltaNet(const WeightScope& layer, const GatedDeltaNetSpec& spec);

  // The branch in two steps: the input of the output layer, (tokens, value_heads * value_dim), and
  // that layer. Goes on from the step's states, and leaves them there.
  Tensor attend(const LayerInput& x, const LayerStep& step) const;
  const Linear& output() const { return output_; }

 private:
  struct Projections {
    Tensor mixed;  // (tokens, 2 * keys + values): q, k and v
    Tensor z;      // (tokens, values)
    Tensor a, b;   // (tokens, value_heads)
  };
  void take_projections(const WeightScope& layer);
  void take_rule(const WeightScope& layer);
  Projections project(const LayerInput& x) const;
  // Parts of the rows that ssm_in and ssm_ba have for each key head.
  void part_inputs(const Tensor& rows, Projections& out) const;
  void part_gates(const Tensor& rows, Projections& out) const;

  GatedDeltaNetSpec spec_;
  bool joined_inputs_ = false, joined_gates_ = false;
  std::vector<Linear> inputs_;  // the layers of x, in the order of the list above
  Linear output_;
  Tensor convolution_;            // (taps + 1, channels) f32
  Tensor decay_, a_bias_;         // (value_heads) f32
  Tensor query_unit_, key_unit_;  // (key_dim): weights that make a norm an L2 norm
  Tensor norm_;                   // (value_dim)
};

}  // namespace rbee::nn
