#include <array>

#include "rbee/ops/attention_checks.h"
#include "rbee/ops/checks.h"
#include "rbee/ops/input_watch.h"
#include "rbee/ops/linear_checks.h"
#include "rbee/ops/rope.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "qkv_append";

Tensor apart(const QkvAppend& on) {
  const std::array layers{&on.q, &on.k, &on.v};
  const std::vector<Tensor> parts = linear_many(on.input, layers);
  const int64_t kv_heads = on.k_cache.dim(1);
  const Tensor q = parts[0].split_last(on.heads), k = parts[1].split_last(kv_heads),
               v = parts[2].split_last(kv_heads);
  return rope_append_(
      {q, k, v, on.cos, on.sin, on.positions, on.slots, on.k_cache, on.v_cache, on.layout});
}

LinearPart part_of(const Tensor& x, const char* name, const LinearWeights& layer, int64_t rows) {
  check_linear_weights(kOp, x, layer);
  check(layer.weight.dim(0) == rows, kOp, name, " is ", layer.weight, "; wanted ", rows, " rows");
  return {.weight = layer.weight.view(), .bias = view_or_absent(layer.bias), .y = {}};
}

}  // namespace

Tensor qkv_append_(const QkvAppend& on) {
  const Tensor& x = on.input.x;
  if (kernels(x).qkv_append.empty() || input_watch() != nullptr) return apart(on);
  check_linear_input(kOp, x);
  check_linear_norm(kOp, on.input);
  check_rank(kOp, "k_cache", on.k_cache, 4);
  const int64_t kv_heads = on.k_cache.dim(1), head_dim = on.k_cache.dim(3);
  check(on.heads >= kv_heads, kOp, "heads are ", on.heads, ", of keys ", kv_heads);
  const int64_t kv_rows = kv_heads * head_dim;
  const std::array parts{part_of(x, "q", on.q, on.heads * head_dim), part_of(x, "k", on.k, kv_rows),
                         part_of(x, "v", on.v, kv_rows)};
  Tensor y = empty({x.dim(0), on.heads, head_dim}, x.dtype(), x.device());
  check_rotation(kOp, y, on.cos, on.sin, on.positions);
  const Tensor fresh = y.slice(Axis{1}, 0, kv_heads);  // keys and values have this shape
  check_append(kOp, fresh, fresh, on.slots, on.k_cache, on.v_cache);
  const QkvAppendArgs args{.x = x.view(),
                           .norm_weight = view_or_absent(on.input.norm_weight),
                           .eps = on.input.eps,
                           .parts = parts,
                           .cos = on.cos.view(),
                           .sin = on.sin.view(),
                           .positions = on.positions.view(),
                           .slots = on.slots.view(),
                           .q_out = y.view(),
                           .k_cache = on.k_cache.view(),
                           .v_cache = on.v_cache.view(),
                           .layout = on.layout};
  return try_run(kOp, kernels(x).qkv_append, args, x.stream()) ? y : apart(on);
}

}  // namespace rbee
