#include "rbee/ops/activation.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {

Tensor gated(GateOp op, const Tensor& gate, const Tensor& up) {
  constexpr const char* kOp = "gated";
  check_float(kOp, "gate", gate);
  check_rank(kOp, "gate", gate, 2);
  check_like(kOp, "gate", gate, "up", up);
  check_shape(kOp, "up", up, gate.shape());
  Tensor y = empty_like(gate);
  if (y.numel() == 0) return y;
  run(kOp, kernels(gate).gated, GatedArgs{op, gate.view(), up.view(), y.view()}, gate.stream());
  return y;
}

}  // namespace rbee
