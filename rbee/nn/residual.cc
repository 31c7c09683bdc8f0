#include "rbee/nn/residual.h"

#include "rbee/nn/embedding.h"
#include "rbee/ops/elementwise.h"

namespace rbee::nn {

void Residual::add(const Tensor& branch) {
  value();
  pending_ = branch;
}

void Residual::add(const Linear& layer, const Tensor& x, float scale) {
  if (scale != 1) return add(affine(layer(x, lora_), scale, 0));
  const Tensor ordered = layer.in_order(x), change = layer.change(x, lora_);
  if (std::optional<Tensor> sum = linear_onto(ordered, layer.weights(), value())) {
    sum_ = std::move(*sum);
    pending_ = change;
  } else {
    const Tensor y = linear(ordered, layer.weights().weight, layer.weights().bias);
    pending_ = change.defined() ? y + change : y;
  }
}

LayerInput Residual::normed_input(const RmsNorm& norm) {
  if (pending_.defined()) return input(this->norm(norm));
  return {norm.before_linear(sum_), lora_};
}

Tensor Residual::norm(const RmsNorm& norm) {
  if (!pending_.defined()) return norm(sum_);
  const SumAndNorm both = norm.add(pending_, sum_);
  sum_ = both.sum;
  pending_ = {};
  return both.norm;
}

void Residual::keep_rows(const Tensor& rows) {
  if (!rows.defined()) return;
  sum_ = take_rows(sum_, rows);
  if (pending_.defined()) pending_ = take_rows(pending_, rows);
  lora_ = lora_.take(rows);
}

const Tensor& Residual::value() {
  if (pending_.defined()) {
    sum_ = sum_ + pending_;
    pending_ = {};
  }
  return sum_;
}

}  // namespace rbee::nn
