#include "rbee/nn/linear.h"

#include <algorithm>
#include <array>

#include "rbee/ops/elementwise.h"
#include "rbee/ops/indexing.h"
#include "rbee/ops/norm.h"

namespace rbee::nn {

namespace {

int64_t total_rows(const LinearShape& shape) {
  return shape.total_rows > 0 ? shape.total_rows : shape.out;
}

group::Range inputs_of(const LinearShape& shape) {
  return shape.inputs.value_or(group::Range{0, shape.in});
}

}  // namespace

LinearShape part_of(LinearShape shape, const group::Range& rows) {
  shape.total_rows = total_rows(shape);
  shape.first_row += rows.first;
  shape.out = rows.count;
  return shape;
}

Linear::Linear(const WeightScope& scope, const LinearShape& shape) : out_(shape.out) {
  if (shape.adapted) {
    input_scale_ = scope.matrix_scale("weight");
    let_adapt(scope, shape, scope.activations());
  }
  if (shape.inputs) {
    take_inputs(scope, shape);
  } else {
    take_rows(scope, shape);
  }
  if (scope.rounds_inputs("weight")) weights_.may_round_to = DType::f8e4m3;
}

void Linear::take_rows(const WeightScope& scope, const LinearShape& shape) {
  const int64_t total = total_rows(shape);
  const RowSlice rows{.first = shape.first_row, .count = shape.out, .total = total};
  if (shape.out == 0) {
    scope.leave("weight", Shape{total, shape.in});
  } else if (shape.adapted) {
    OrderedMatrix matrix = scope.ordered_matrix("weight", rows, shape.in);
    weights_.weight = std::move(matrix.weight);
    order_ = std::move(matrix.order);
  } else {
    weights_.weight = scope.matrix("weight", rows, shape.in);
  }
  take_bias(scope, shape, shape.out > 0);
  if (shape.out > 0 && !order_.defined() && input_scale_ == 1) {
    visiting_ = scope.visiting_matrix("weight", rows, shape.in, weights_.bias);
  }
}

void Linear::take_inputs(const WeightScope& scope, const LinearShape& shape) {
  RB_ASSERT(shape.first_row == 0 && total_rows(shape) == shape.out);
  group_ = scope.group().view;
  const Shape matrix{shape.out, shape.in};
  const group::Range own = *shape.inputs;
  if (scope.has_order("weight", matrix)) {
    fail(Code::unsupported, "load", scope.name("weight"), " has its inputs in an order by ",
         "activations (GPTQ's desc_act), which ranks of a group cannot share; quantise the ",
         "model anew, with `rbee quantize` or without desc_act");
  }
  if (own.count == 0) {
    scope.leave("weight", matrix);
  } else {
    const int64_t block = scope.input_block("weight");
    const int64_t first = own.first / block * block;
    const int64_t end = std::min((own.end() + block - 1) / block * block, shape.in);
    weights_.weight = scope.matrix("weight", {.count = shape.out, .total = shape.out}, shape.in,
                                   group::Range{first, end - first});
    among_inputs_ = {own.first - first, own.count};
    if (end - first != own.count) padded_in_ = end - first;
  }
  // The sum has it once.
  take_bias(scope, shape, own.first == 0 && own.count > 0);
}

void Linear::take_bias(const WeightScope& scope, const LinearShape& shape, bool here) {
  if (shape.bias == Bias::none) return;
  if (shape.bias == Bias::optional && !scope.has("bias")) return;
  const int64_t total = total_rows(shape);
  if (here) {
    weights_.bias = scope.vector("bias", total).slice(Axis{0}, shape.first_row, shape.out);
  } else {
    scope.leave("bias", Shape{total});
  }
}

void Linear::let_adapt(const WeightScope& scope, const LinearShape& shape, DType dtype) {
  const group::Range inputs = inputs_of(shape);
  lora_ = std::make_shared<LoraLayer>(inputs.count, shape.out, scope.device(), dtype);
  scope.lora_targets().push_back({.gguf = scope.is_gguf() ? scope.role() : std::string(),
                                  .hf = scope.hf_name(),
                                  .first_row = shape.first_row,
                                  .total_rows = total_rows(shape),
                                  .first_input = inputs.first,
                                  .total_inputs = shape.in,
                                  .pair_heads = shape.pair_heads,
                                  .layer = lora_});
}

Tensor Linear::in_order(const Tensor& x) const {
  Tensor ordered = order_.defined() ? index_select(x, Axis{1}, order_) : x;
  if (padded_in_ > 0) {
    Tensor wide = zeros({x.dim(0), padded_in_}, x.dtype(), x.device());
    Tensor own = wide.slice(Axis{1}, among_inputs_.first, among_inputs_.count);
    copy_(own, ordered);
    ordered = std::move(wide);
  }
  return input_scale_ == 1 ? ordered : affine(ordered, double{input_scale_}, 0);
}

namespace {

bool visit(int64_t rows, std::span<const Linear* const> layers) {
  return std::ranges::all_of(layers, [&](const Linear* layer) { return layer->visits(rows); });
}

std::vector<Tensor> visiting_products(const Tensor& x, std::span<const Linear* const> layers) {
  const auto work = [&](WeightStream::Turn& turn, const Tensor& there) {
    std::vector<Tensor> out;
    for (const Linear* layer : layers) {
      out.push_back(layer->visiting().product(turn, there));
      turn.give_back();
    }
    return out;
  };
  return layers.front()->visiting().visitors->run(x, work);
}

}  // namespace

Tensor Linear::partial(const Tensor& x) const {
  const std::array<const Linear*, 1> own{this};
  if (visits(x.dim(0))) return visiting_products(x, own).front();
  if (weights_.weight.defined()) return linear(in_order(x), weights_);
  return zeros({x.dim(0), out_}, x.dtype(), x.device());
}

Tensor Linear::change(const Tensor& x, const LoraRows& rows) const {
  const std::array<const LoraLayer*, 1> own{lora_.get()};
  return lora_changes(x, rows, own).front();
}

Tensor Linear::partial(const Tensor& x, const LoraRows& rows) const {
  const Tensor y = partial(x), added = change(x, rows);
  return added.defined() ? y + added : y;
}

Tensor Linear::in_f32(const Tensor& x, const LoraRows& rows) const {
  if (out_ == 0) return empty({x.dim(0), 0}, DType::f32, x.device());
  const Tensor wide = cast(x, DType::f32), added = change(wide, rows);
  const Tensor y = linear(in_order(wide), weights_.weight, weights_.bias, x.dtype());
  return added.defined() ? y + added : y;
}

Tensor Linear::over_last(const Tensor& x) const {
  const int64_t in = x.dim(-1);
  Shape shape = x.shape();
  const int64_t rows = in == 0 ? 0 : x.numel() / in;
  const Tensor y = (*this)(contiguous(x).reshape({rows, in}));
  shape[shape.rank() - 1] = y.dim(1);
  return y.reshape(shape);
}

Tensor Linear::onto(const Tensor& residual, const Tensor& x) const {
  const int64_t in = x.dim(-1), out = residual.dim(-1);
  const Tensor rows = contiguous(x).reshape({in == 0 ? 0 : x.numel() / in, in});
  const Tensor onto = residual.reshape({rows.dim(0), out});
  const Tensor ordered = in_order(rows);
  if (std::optional<Tensor> sum = linear_onto(ordered, weights_, onto)) {
    return sum->reshape(residual.shape());
  }
  const Tensor y = linear(ordered, weights_);
  return residual + y.reshape(residual.shape());
}

namespace {

bool unadapted(const LayerInput& x, std::span<const Linear* const> layers) {
  return !x.lora.defined() || std::ranges::all_of(layers, [](const Linear* layer) {
    return layer->lora() == nullptr || layer->lora()->empty();
  });
}

bool one_visits(int64_t rows, std::span<const Linear* const> layers) {
  return std::ranges::any_of(layers, [&](const Linear* layer) { return layer->visits(rows); });
}

bool in_order(std::span<const Linear* const> layers) {
  return std::ranges::none_of(layers, [](const Linear* layer) {
    return layer->order().defined() || layer->input_scale() != 1;
  });
}

// Whether one input in order serves all of them.
bool share_order(std::span<const Linear* const> layers) {
  return std::ranges::all_of(layers, [&](const Linear* layer) {
    return layer->order().buffer() == layers.front()->order().buffer() &&
           layer->input_scale() == layers.front()->input_scale();
  });
}

Tensor normed(const LayerInput& x) {
  return x.norm_weight.defined() ? rms_norm(x.x, x.norm_weight, x.eps) : x.x;
}

// The products of rows, which have their norm, with weights.
std::vector<Tensor> products(const Tensor& rows, std::span<const Linear* const> layers) {
  if (visit(rows.dim(0), layers)) return visiting_products(rows, layers);
  std::vector<Tensor> out;
  if (!share_order(layers) || one_visits(rows.dim(0), layers)) {
    for (const Linear* layer : layers) out.push_back((*layer)(rows));
    return out;
  }
  std::vector<const LinearWeights*> weights;
  for (const Linear* layer : layers) weights.push_back(&layer->weights());
  return rbee::linear_many(layers.front()->in_order(rows), weights);
}

// The rows between gate, up and down are the widest of a layer: only their product goes back.
Tensor visiting_gated(GateOp op, const Tensor& x, std::span<const Linear* const, 2> both) {
  const auto work = [&](WeightStream::Turn& turn, const Tensor& there) {
    const Tensor gate = both[0]->visiting().product(turn, there);
    const Tensor up = both[1]->visiting().product(turn, there);
    return std::vector<Tensor>{gated(op, gate, up)};
  };
  return both[0]->visiting().visitors->run(x, work).front();
}

}  // namespace

bool plain(const LayerInput& x, std::span<const Linear* const> layers) {
  return unadapted(x, layers) && in_order(layers) && !one_visits(x.x.dim(0), layers);
}

std::vector<Tensor> linear_many(const LayerInput& x, std::span<const Linear* const> layers) {
  std::vector<const LinearWeights*> weights;
  std::vector<const LoraLayer*> adapters;
  for (const Linear* layer : layers) {
    weights.push_back(&layer->weights());
    adapters.push_back(layer->lora());
  }
  if (plain(x, layers)) return rbee::linear_many(x, weights);
  const Tensor rows = normed(x);
  std::vector<Tensor> out = products(rows, layers);
  const std::vector<Tensor> added = lora_changes(rows, x.lora, adapters);
  for (size_t i = 0; i < out.size(); ++i) {
    if (added[i].defined()) out[i] = out[i] + added[i];
  }
  return out;
}

Tensor gated_linear(GateOp op, const LayerInput& x, const Linear& gate, const Linear& up) {
  const std::array both{&gate, &up};
  if (plain(x, both)) return rbee::gated_linear(op, x, gate.weights(), up.weights());
  if (unadapted(x, both) && visit(x.x.dim(0), both)) return visiting_gated(op, normed(x), both);
  if (unadapted(x, both) && share_order(both) && !one_visits(x.x.dim(0), both)) {
    return rbee::gated_linear(op, gate.in_order(normed(x)), gate.weights(), up.weights());
  }
  const std::vector<Tensor> results = linear_many(x, both);
  return gated(op, results[0], results[1]);
}

namespace {

bool may_adjoin(const LinearWeights& a, const LinearWeights& b) {
  return b.weight.dtype() == a.weight.dtype() && b.weight.dim(1) == a.weight.dim(1) &&
         b.bias.defined() == a.bias.defined();
}

bool follows_in_memory(const Tensor& x, const Tensor& next) {
  const auto* end = static_cast<const std::byte*>(x.view().data) + x.bytes();
  return x.buffer() == next.buffer() && next.view().data == end;
}

// The tensors as rows of one: copies, unless they are that already.
std::vector<Tensor> one_after_another(const WeightScope& scope, const std::vector<Tensor>& parts) {
  const auto apart = [](const Tensor& x, const Tensor& next) {
    return !follows_in_memory(x, next);
  };
  if (std::ranges::adjacent_find(parts, apart) == parts.end()) return parts;
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& part : parts) shape[0] += part.dim(0);
  const Tensor whole = empty(shape, parts[0].dtype(), parts[0].device());
  std::vector<Tensor> out;
  int64_t first = 0;
  for (const Tensor& part : parts) {
    out.push_back(whole.slice(Axis{0}, first, part.dim(0)));
    copy_(out.back(), part);
    scope.moved(part, out.back());
    first += part.dim(0);
  }
  return out;
}

}  // namespace

void adjoin(const WeightScope& scope, std::initializer_list<Linear*> layers) {
  const LinearWeights& first = (*layers.begin())->weights_;
  if (!first.weight.defined() || first.weight.device().host_accessible() ||
      !is_float(first.weight.dtype())) {
    return;
  }
  std::vector<Tensor> weights, biases;
  for (const Linear* layer : layers) {
    const LinearWeights& own = layer->weights_;
    if (own.weight.packing() != 0 || !may_adjoin(first, own)) return;
    weights.push_back(own.weight);
    if (own.bias.defined()) biases.push_back(own.bias);
  }
  weights = one_after_another(scope, weights);
  biases = biases.empty() ? std::vector<Tensor>(layers.size()) : one_after_another(scope, biases);
  for (size_t i = 0; Linear * layer : layers) {
    layer->weights_ = {.weight = weights[i],
                       .bias = biases[i],
                       .adjoins = i > 0,
                       .may_round_to = layer->weights_.may_round_to};
    ++i;
  }
}

}  // namespace rbee::nn
