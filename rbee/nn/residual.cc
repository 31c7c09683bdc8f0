#include "rbee/nn/residual.h"

#include "rbee/nn/embedding.h"
#include "rbee/ops/elementwise.h"

namespace rbee::nn {

void Residual::add(const Tensor& branch) {
  value();
  pending_ = branch;
}

void Residual::add_partial(const Tensor& branch, const GroupView& group) {
  add(branch);
  group_ = group;
}

void Residual::add(const Linear& layer, const Tensor& x, float scale) {
  if (!layer.group().alone()) {
    const Tensor part = layer.partial(x, lora_);
    return add_partial(scale == 1 ? part : affine(part, scale, 0), layer.group());
  }
  if (scale != 1) return add(affine(layer(x, lora_), scale, 0));
  if (layer.visits(x.dim(0))) return add(layer(x, lora_));
  const Tensor ordered = layer.in_order(x), change = layer.change(x, lora_);
  if (std::optional<Tensor> sum = linear_onto(ordered, layer.weights(), value())) {
    sum_ = std::move(*sum);
    pending_ = change;
  } else if (change.defined()) {
    pending_ = linear(ordered, layer.weights()) + change;
  } else {
    layer_ = &layer.weights();
    layer_x_ = ordered;
  }
}

void Residual::evaluate() {
  if (layer_ == nullptr) return;
  pending_ = linear(layer_x_, *layer_);
  layer_ = nullptr;
  layer_x_ = {};
}

LayerInput Residual::normed_input(const RmsNorm& norm) {
  if (pending_.defined() || layer_ != nullptr) return input(this->norm(norm));
  return {norm.before_linear(sum_), lora_};
}

Tensor Residual::norm(const RmsNorm& norm) {
  if (layer_ != nullptr) {
    if (std::optional<SumAndNorm> both = norm.add(layer_x_, *layer_, sum_)) {
      sum_ = std::move(both->sum);
      layer_ = nullptr;
      layer_x_ = {};
      return std::move(both->norm);
    }
    evaluate();
  }
  if (!pending_.defined()) return norm(sum_);
  const SumAndNorm both = norm.add(pending_, sum_, group_);
  sum_ = both.sum;
  pending_ = {};
  group_ = {};
  return both.norm;
}

void Residual::keep_rows(const Tensor& rows) {
  if (!rows.defined()) return;
  evaluate();
  sum_ = take_rows(sum_, rows);
  if (pending_.defined()) pending_ = take_rows(pending_, rows);
  lora_ = lora_.take(rows);
}

const Tensor& Residual::value() {
  evaluate();
  if (pending_.defined()) {
    sum_ = sum_ + all_reduce(pending_, group_);
    pending_ = {};
    group_ = {};
  }
  return sum_;
}

}  // namespace rbee::nn
