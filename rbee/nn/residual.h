#pragma once

#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::nn {

// The residual stream of a transformer. An added branch stays pending until the next norm, so that
// the sum and the norm are one kernel, unless the branch's last layer adds the branch itself. If
// nothing follows that layer, the layer is pending too and may become part of that kernel. In a
// group of ranks a pending branch may be a rank's part of a sum, which is added in the same step.
class Residual {
 public:
  // x: (tokens, dim)
  explicit Residual(Tensor x, LoraRows lora = {}) : sum_(std::move(x)), lora_(std::move(lora)) {}

  void add(const Tensor& branch);
  // Adds the sum of the ranks' branches; with a rank alone, the branch.
  void add_partial(const Tensor& branch, const GroupView& group);
  // Adds scale * layer(x). The layer outlives the stream.
  void add(const Linear& layer, const Tensor& x, float scale = 1);
  Tensor norm(const RmsNorm& norm);
  Tensor norm(const LayerNorm& norm) { return norm(value()); }
  // The same for linear layers, which may compute the norm themselves.
  LayerInput normed_input(const RmsNorm& norm);
  // Rows made from the stream's, with the same adapters.
  LayerInput input(Tensor x) const { return {std::move(x), lora_}; }
  // Keeps only the rows that `rows`, (n) i32, picks; undefined = all.
  void keep_rows(const Tensor& rows);
  const Tensor& value();

 private:
  // Computes what is pending as a layer into pending_.
  void evaluate();

  Tensor sum_;
  Tensor pending_;
  GroupView group_ = {};                  // whose parts pending_ is; a rank alone: the branch
  const LinearWeights* layer_ = nullptr;  // pending: its product with layer_x_
  Tensor layer_x_;
  LoraRows lora_;
};

}  // namespace rbee::nn
