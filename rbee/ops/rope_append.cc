#include "rbee/ops/attention.h"
#include "rbee/ops/attention_checks.h"
#include "rbee/ops/checks.h"
#include "rbee/ops/rope.h"
#include "rbee/ops/run.h"

namespace rbee {

Tensor rope_append_(const RopeAppend& on) {
  constexpr const char* kOp = "rope_append";
  if (kernels(on.q).rope_append.empty()) {
    Tensor y = rope(on.q, on.cos, on.sin, on.positions, on.layout);
    const Tensor keys = rope(on.k, on.cos, on.sin, on.positions, on.layout);
    kv_append_(keys, on.v, on.slots, on.k_cache, on.v_cache);
    return y;
  }
  check_rotation(kOp, on.q, on.cos, on.sin, on.positions);
  check_like(kOp, "q", on.q, "k", on.k);
  check_append(kOp, on.k, on.v, on.slots, on.k_cache, on.v_cache);
  check(on.k.dim(0) == on.q.dim(0) && on.k.dim(2) == on.q.dim(2), kOp, "k is ", on.k, ", q is ",
        on.q, "; wanted the same tokens and head_dim");
  Tensor y = empty_like(on.q);
  if (y.numel() == 0 && on.k.numel() == 0) return y;
  run(kOp, kernels(on.q).rope_append,
      RopeAppendArgs{.q = on.q.view(),
                     .k = on.k.view(),
                     .v = on.v.view(),
                     .cos = on.cos.view(),
                     .sin = on.sin.view(),
                     .positions = on.positions.view(),
                     .slots = on.slots.view(),
                     .q_out = y.view(),
                     .k_cache = on.k_cache.view(),
                     .v_cache = on.v_cache.view(),
                     .layout = on.layout},
      on.q.stream());
  return y;
}

}  // namespace rbee
