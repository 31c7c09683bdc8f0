#pragma once

#include <span>
#include <vector>

#include "rbee/nn/linear.h"

namespace rbee::nn {

// The scope's rank's columns of a hidden row of `ffn_dim`, which down's "weight" multiplies. Parts
// are multiples of 128 if that leaves every rank one, else of fewer, and of whole blocks.
// share: how the ranks share them.
group::Range ffn_columns(const WeightScope& down, int64_t ffn_dim, const group::Share& share);

// How the ranks share `total` elements so that each has its part of these and of what it has
// besides, as near as they suffice. beside: each rank's elements; empty: none.
group::Share share_beside(const group::Share& share, double total, std::span<const double> beside);

struct MlpSpec {
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  GateOp activation = GateOp::silu;
  Bias bias = Bias::none;
  bool fused = false;            // "ffn_up" holds the rows of gate, then up
  std::string_view suffix = {};  // of the three names, e.g. "_shexp"
  // Elements that each rank of a group has of the layer's other matrices, which its columns even
  // out; empty: they are not looked at.
  std::vector<double> beside = {};
};

// down(act(gate(x)) * up(x)): Shazeer 2020, "GLU Variants Improve Transformer", equation 6
class Mlp {
 public:
  // Takes ffn_gate, ffn_up and ffn_down of a layer; of a group's rank, its columns of the hidden
  // rows.
  Mlp(const WeightScope& layer, const MlpSpec& spec);

  Tensor operator()(const LayerInput& x) const {
    return down_(hidden(x), x.lora);
  }  // (tokens, dim)
  // The branch in two steps: the input of the last layer, (tokens, the rank's columns of ffn_dim),
  // and that layer.
  Tensor hidden(const LayerInput& x) const;
  const Linear& down() const { return down_; }

 private:
  GateOp activation_;
  int64_t columns_;  // of the hidden rows
  Linear gate_, up_, down_;
};

}  // namespace rbee::nn
