#include "rbee/ops/recurrent.h"

#include <algorithm>
#include <vector>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_list(const char* op, const Tensor& x, const char* name, const Tensor& list,
                const Shape& shape, DType dtype) {
  check_same_device(op, "x", x, name, list);
  check_shape(op, name, list, shape);
  check(list.dtype() == dtype && list.contiguous(), op, name, " is ", list, ", wanted contiguous ",
        dtype);
}

// What the lists hold, if the host can read them.
void check_values(const char* op, const SequenceStates& batch, int64_t tokens, int64_t slots) {
  const std::vector<int32_t> starts = batch.seq_starts.to_host<int32_t>();
  std::vector<int32_t> taken = batch.slots.to_host<int32_t>();
  check(starts.front() == 0 && starts.back() == tokens && std::ranges::is_sorted(starts), op,
        "seq_starts go from ", starts.front(), " to ", starts.back(), ", wanted 0 to ", tokens,
        " in order");
  std::erase(taken, -1);
  std::ranges::sort(taken);
  for (const int32_t slot : taken) {
    check(slot >= 0 && slot < slots, op, "slot ", slot, " is outside of -1 to ", slots - 1);
  }
  const auto twice = std::ranges::adjacent_find(taken);
  check(twice == taken.end(), op, "two sequences have slot ", twice == taken.end() ? 0 : *twice);
}

StateBatch check_batch(const char* op, const Tensor& x, const Tensor& state,
                       const SequenceStates& batch) {
  const int64_t tokens = x.dim(0);
  check_rank(op, "slots", batch.slots, 1);
  const int64_t seqs = batch.slots.dim(0);
  check_list(op, x, "slots", batch.slots, Shape{seqs}, DType::i32);
  check_list(op, x, "seq_starts", batch.seq_starts, Shape{seqs + 1}, DType::i32);
  check_list(op, x, "positions", batch.positions, Shape{tokens}, DType::i32);
  if (x.device().host_accessible()) check_values(op, batch, tokens, state.dim(0));
  return {.seq_starts = batch.seq_starts.view(),
          .positions = batch.positions.view(),
          .slots = batch.slots.view()};
}

}  // namespace

Tensor causal_conv_(const Tensor& x, const Tensor& weight, Tensor& state,
                    const SequenceStates& batch) {
  constexpr const char* kOp = "causal_conv";
  check_float(kOp, "x", x);
  check_rank(kOp, "x", x, 2);
  check_rank(kOp, "weight", weight, 2);
  const int64_t channels = x.dim(1), taps = weight.dim(0) - 1;
  check(taps >= 1, kOp, "weight is ", weight, ", wanted at least two rows");
  check_list(kOp, x, "weight", weight, Shape{taps + 1, channels}, DType::f32);
  check_rank(kOp, "state", state, 3);
  check_list(kOp, x, "state", state, Shape{state.dim(0), taps, channels}, DType::f32);
  const StateBatch checked = check_batch(kOp, x, state, batch);
  Tensor y = empty({x.dim(0), channels}, x.dtype(), x.device());
  if (y.numel() == 0) return y;
  run(kOp, kernels(x).causal_conv,
      CausalConvArgs{.x = x.view(),
                     .weight = weight.view(),
                     .y = y.view(),
                     .state = state.view(),
                     .batch = checked},
      x.stream());
  return y;
}

Tensor delta_rule_(const DeltaRuleInputs& inputs, Tensor& state, const SequenceStates& batch) {
  constexpr const char* kOp = "delta_rule";
  const Tensor &k = inputs.k, &v = inputs.v;
  check_float(kOp, "v", v);
  check_rank(kOp, "v", v, 3);
  check_rank(kOp, "k", k, 3);
  const int64_t tokens = v.dim(0), heads = v.dim(1);
  check_like(kOp, "v", v, "k", k);
  check_shape(kOp, "k", k, Shape{tokens, k.dim(1), k.dim(2)});
  check(k.dim(1) > 0 && heads % k.dim(1) == 0, kOp, "v has ", heads, " heads, k has ", k.dim(1));
  check_like(kOp, "v", v, "q", inputs.q);
  check_shape(kOp, "q", inputs.q, k.shape());
  check_like(kOp, "v", v, "a", inputs.a);
  check_shape(kOp, "a", inputs.a, Shape{tokens, heads});
  check_like(kOp, "v", v, "b", inputs.b);
  check_shape(kOp, "b", inputs.b, Shape{tokens, heads});
  check_list(kOp, v, "decay", inputs.decay, Shape{heads}, DType::f32);
  check_list(kOp, v, "a_bias", inputs.a_bias, Shape{heads}, DType::f32);
  check_rank(kOp, "state", state, 4);
  check_list(kOp, v, "state", state, Shape{state.dim(0), heads, k.dim(2), v.dim(2)}, DType::f32);
  const StateBatch checked = check_batch(kOp, v, state, batch);
  Tensor y = empty(v.shape(), v.dtype(), v.device());
  if (y.numel() == 0) return y;
  run(kOp, kernels(v).delta_rule,
      DeltaRuleArgs{.q = inputs.q.view(),
                    .k = k.view(),
                    .v = v.view(),
                    .a = inputs.a.view(),
                    .b = inputs.b.view(),
                    .decay = inputs.decay.view(),
                    .a_bias = inputs.a_bias.view(),
                    .y = y.view(),
                    .state = state.view(),
                    .batch = checked,
                    .tiled = inputs.tiled},
      v.stream());
  return y;
}

}  // namespace rbee
