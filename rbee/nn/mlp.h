#pragma once

#include "rbee/nn/linear.h"

namespace rbee::nn {

struct MlpSpec {
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  GateOp activation = GateOp::silu;
  Bias bias = Bias::none;
  bool fused = false;            // "ffn_up" holds the rows of gate, then up
  std::string_view suffix = {};  // of the three names, e.g. "_shexp"
};

// down(act(gate(x)) * up(x)): Shazeer 2020, "GLU Variants Improve Transformer", equation 6
class Mlp {
 public:
  // Takes ffn_gate, ffn_up and ffn_down of a layer.
  Mlp(const WeightScope& layer, const MlpSpec& spec);

  Tensor operator()(const LayerInput& x) const {
    return down_(hidden(x), x.lora);
  }  // (tokens, dim)
  // The branch in two steps: the input of the last layer, (tokens, ffn_dim), and that layer.
  Tensor hidden(const LayerInput& x) const { return gated_linear(activation_, x, gate_, up_); }
  const Linear& down() const { return down_; }

 private:
  GateOp activation_;
  Linear gate_, up_, down_;
};

}  // namespace rbee::nn
