#pragma once

#include <memory>
#include <vector>

#include "rbee/nn/mlp.h"
#include "rbee/ops/experts.h"
#include "rbee/tensor/host_trip.h"

namespace rbee::nn {

struct MoeSpec {
  int64_t dim = 0;
  int64_t experts = 0;
  int64_t ffn_dim = 0;  // of an expert
  GateOp activation = GateOp::silu;
  RouteOptions route;          // without its bias
  bool choice_bias = false;    // "exp_probs_b" counts for the choice (DeepSeek-V3)
  int64_t shared_ffn_dim = 0;  // of the shared expert, which every token takes; 0 = none
  // GPT-OSS: biases everywhere, and (min(up, limit) + 1) * quick_gelu(min(gate, limit)), with up
  // above -limit as well. 0 = neither.
  float swiglu_limit = 0;
  bool shared_is_gated = false;  // its result times sigmoid(ffn_gate_inp_shexp(x))
};

// The sum of a few of many feed-forward networks for each token (Shazeer et al. 2017; Fedus et al.
// 2021), each down(act(gate(x)) * up(x)), weighted by the router's scores.
class Moe {
 public:
  // The experts are where layer.for_experts() is. Takes ffn_gate_inp, ffn_gate_exps, ffn_up_exps
  // and ffn_down_exps of a layer (or ffn_gate_up_exps for two of these; in Hugging Face's form
  // "gate_up_proj" and "down_proj" of "experts"), and the experts' scales if an NVFP4 file has
  // them. Depending on the spec, also takes their biases, exp_probs_b, ffn_gate_shexp,
  // ffn_up_shexp, ffn_down_shexp and ffn_gate_inp_shexp. A group's rank takes its columns of the
  // experts' hidden rows, or with LoadOptions::expert_parallel its range of the experts. Throws
  // unsupported if experts have both biases and scales.
  Moe(const WeightScope& layer, const MoeSpec& spec);

  // x and the result: (tokens, dim). Adapters change only the shared expert. x must not carry a
  // norm.
  Tensor operator()(const LayerInput& x) const { return all_reduce(partial(x), group_); }
  // This rank's part of the sum over group(); with a rank alone, the result.
  Tensor partial(const LayerInput& x) const;
  const GroupView& group() const { return group_; }
  // Whether the layer's device has its experts on the host. The host computes them in f32; in large
  // steps they come to the device (Visitors).
  bool on_host() const { return trip_ != nullptr; }

 private:
  // What computes experts, on one device.
  struct Experts {
    LinearWeights gate, up, down;   // (experts, out, in)
    Tensor gate_scales, up_scales;  // (experts, 1) as activations; undefined: no scales
    Tensor down_scales;             // (experts) f32, likewise
    Tensor limit, lower_limit;      // (1): of swiglu_limit
  };

  void take_range(const WeightScope& layer);
  void take_experts(const WeightScope& layer);
  // Whether the file has gate and up of each expert as one matrix.
  static bool has_joined_experts(const WeightScope& layer);
  void take_joined_experts(const WeightScope& layer);
  void take_biased_experts(const WeightScope& layer);
  void take_limits(const WeightScope& layer);
  // The rank's experts of (experts, n), and of (experts, ffn_dim) their columns that it has.
  Tensor own_rows(const Tensor& x) const;
  Tensor own_columns(const Tensor& x) const;
  // What the rank takes of gate and up, and of down.
  StackCut gate_cut() const;
  StackCut down_cut() const;
  // Whether the rank has no part of any expert.
  bool idle() const { return range_.count == 0 || columns_.count == 0; }
  void take_scales(const WeightScope& layer);
  // Makes ready for steps whose experts come to the layer's device.
  void take_visitors(const WeightScope& layer, const WeightScope& stacks);
  Tensor shared(const LayerInput& x) const;
  // The products of gate and up, made one.
  Tensor hidden(const Experts& experts, const Tensor& x, const Routing& routing) const;
  Tensor activated(const Experts& experts, const Tensor& gate, const Tensor& up) const;
  static Tensor sum(const Experts& experts, const Tensor& hidden, const Routing& routing);
  // The sum of the chosen experts, computed where they are, or where they come to.
  Tensor chosen(const Tensor& x, const Routing& routing) const;
  Tensor chosen_of_visitors(const Tensor& x, const Routing& routing) const;

  MoeSpec spec_;
  group::Range range_;    // of the experts, that the rank has
  Tensor places_;         // (experts) i32: in the rank's stacks, -1: not there; undefined: all are
  group::Range columns_;  // of the experts' hidden rows, that the rank has
  GroupView group_;
  Linear router_, shared_gate_;
  Experts experts_;
  std::vector<Mlp> shared_;         // one or none
  std::shared_ptr<HostTrip> trip_;  // null: the experts are on the layer's device
  // Null: they do not leave the host. Their gates are at first_, then up, then down.
  std::shared_ptr<Visitors> visitors_;
  size_t first_ = 0;
  Experts visiting_;  // without weights
};

}  // namespace rbee::nn
