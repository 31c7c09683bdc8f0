#include "rbee/ops/attention.h"

#include <cmath>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "attention";

struct Sizes {
  int64_t batch, heads, q_len, kv_len, head_dim, v_dim;
};

Sizes check_operands(const Tensor& q, const Tensor& k, const Tensor& v) {
  check_float(kOp, "q", q);
  check_like(kOp, "q", q, "k", k);
  check_like(kOp, "q", q, "v", v);
  check_rank(kOp, "q", q, 4);
  check_rank(kOp, "k", k, 4);
  check_rank(kOp, "v", v, 4);
  const auto [batch, heads, q_len, head_dim] = q.dims<4>();
  const auto [k_batch, kv_heads, kv_len, k_dim] = k.dims<4>();
  const int64_t v_dim = v.dim(-1);
  check(head_dim >= 1, kOp, "q is ", q, ", wanted heads of at least one element");
  check(k_batch == batch && k_dim == head_dim, kOp, "q is ", q, ", k is ", k);
  check_shape(kOp, "v", v, {batch, kv_heads, kv_len, v_dim});
  check(kv_heads >= 1 && heads % kv_heads == 0, kOp, heads, " heads are not a multiple of ",
        kv_heads, " key heads");
  return {batch, heads, q_len, kv_len, head_dim, v_dim};
}

void check_options(const AttentionOptions& options) {
  check(std::isfinite(options.scale), kOp, "the scale is ", options.scale, ", not finite");
  check(options.softcap >= 0, kOp, "softcap is ", options.softcap, ", wanted 0 (off) or more");
  check(options.window >= 0, kOp, "the window is ", options.window, ", wanted 0 (off) or more");
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  const int shift = to.rank() - from.rank();
  if (shift < 0) return false;
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] != to[i + shift] && from[i] != 1) return false;
  }
  return true;
}

// An optional f32 operand on q's device, broadcast to `shape`; absent when undefined.
View f32_operand(const char* name, const Tensor& x, const Tensor& q, const Shape& shape) {
  if (!x.defined()) return View{};
  check_same_device(kOp, "q", q, name, x);
  check(x.dtype() == DType::f32, kOp, name, " is ", x, ", wanted f32");
  check(broadcasts_to(x.shape(), shape), kOp, name, " is ", x, ", does not broadcast to (", shape,
        ")");
  return x.broadcast_to(shape).view();
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  const Sizes n = check_operands(q, k, v);
  check_options(options);
  const View mask = f32_operand("mask", options.mask, q, {n.batch, n.heads, n.q_len, n.kv_len});
  if (options.alibi_slopes.defined()) {
    check_shape(kOp, "alibi_slopes", options.alibi_slopes, {n.heads});
  }
  const View slopes = f32_operand("alibi_slopes", options.alibi_slopes, q, {n.heads});
  const float usual_scale = 1.0f / std::sqrt(static_cast<float>(n.head_dim));
  Tensor y =
      empty({n.batch, n.q_len, n.heads, n.v_dim}, q.dtype(), q.device()).permute({0, 2, 1, 3});
  const AttentionArgs args{.q = q.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .mask = mask,
                           .alibi_slopes = slopes,
                           .y = y.view(),
                           .scale = options.scale != 0 ? options.scale : usual_scale,
                           .softcap = options.softcap,
                           .window = options.window,
                           .causal = options.causal};
  run(kOp, kernels(q).attention, args, q.stream());
  return y;
}

}  // namespace rbee
