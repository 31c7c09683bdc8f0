#include "rbee/ops/embedding.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {

Tensor embedding(const Tensor& ids, const Tensor& table, float scale, DType dtype) {
  constexpr const char* kOp = "embedding";
  check_same_device(kOp, "ids", ids, "table", table);
  check_rank(kOp, "ids", ids, 1);
  check(ids.dtype() == DType::i32, kOp, "ids are ", ids, ", wanted i32");
  check_rank(kOp, "table", table, 2);
  check(is_float(table.dtype()) || is_quantized(table.dtype()), kOp, "table is ", table,
        ", wanted a float or block type");
  check(table.packing() == 0, kOp, "table is packed for linear layers; keep the plain one");
  check(table.contiguous(), kOp, "table is ", table, ", not contiguous");
  check(is_float(dtype), kOp, "a result of ", dtype, ", wanted a float type");
  if (ids.device().host_accessible()) {
    for (int32_t id : ids.to_host<int32_t>()) {
      check(id >= 0 && id < table.dim(0), kOp, "id ", id, " is outside of 0 to ", table.dim(0) - 1);
    }
  }
  Tensor y = empty({ids.dim(0), table.dim(1)}, dtype, table.device());
  if (y.numel() == 0) return y;
  run(kOp, kernels(table).embedding, EmbeddingArgs{ids.view(), table.view(), y.view(), scale},
      table.stream());
  return y;
}

}  // namespace rbee
