#include "rbee/ops/indexing.h"

#include "backends/api/dispatch.h"
#include "rbee/ops/checks.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

bool is_id_type(DType dtype) {
  return is_integer(dtype);
}

void check_ids_type(const char* op, const Tensor& x, const Tensor& ids) {
  check_plain(op, "x", x);
  check_same_device(op, "x", x, "ids", ids);
  check(is_id_type(ids.dtype()), op, "ids are ", ids, ", wanted u8, u32, i16, i32 or i64");
}

// Every id that the host can read is below `limit` or names nothing.
void check_ids(const char* op, const Tensor& ids, int64_t limit) {
  if (!ids.device().host_accessible()) return;
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t>(op, ids.dtype(), [&]<typename Id>() {
    const std::vector<Id> values = ids.to_host<Id>();
    for (size_t i = 0; i < values.size(); ++i) {
      check(names_nothing(values[i]) || static_cast<int64_t>(values[i]) < limit, op, "id ",
            values[i], " at element ", i, " is outside of an axis of ", limit);
    }
  });
}

// x covers ids along every axis but `axis`.
void check_covers(const char* op, const Tensor& x, const Tensor& ids, int axis) {
  check_rank(op, "ids", ids, x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    check(i == axis || ids.dim(i) <= x.dim(i), op, "ids are ", ids, ", larger than x ", x,
          " along axis ", i);
  }
}

Shape with_size(const Tensor& x, int axis, int64_t size) {
  Shape shape = x.shape();
  shape[axis] = size;
  return shape;
}

Tensor copy_of(const Tensor& x) {
  Tensor y = empty_like(x);
  copy_(y, x);
  return y;
}

Tensor scatter_into(const char* op, const Tensor& x, Axis named_axis, const Tensor& ids,
                    const Tensor& src, bool add) {
  check_ids_type(op, x, ids);
  check_like(op, "x", x, "src", src);
  const int axis = check_axis(op, "x", x, named_axis);
  check_covers(op, x, ids, axis);
  check_shape(op, "src", src, ids.shape());
  check_ids(op, ids, x.dim(axis));
  Tensor y = copy_of(x);
  const ScatterArgs args{ids.view(), src.view(), y.view(), axis, add};
  run(op, kernels(x).scatter, args, x.stream());
  return y;
}

}  // namespace

Tensor gather(const Tensor& x, Axis named_axis, const Tensor& ids) {
  constexpr const char* kOp = "gather";
  check_ids_type(kOp, x, ids);
  const int axis = check_axis(kOp, "x", x, named_axis);
  check_covers(kOp, x, ids, axis);
  check_ids(kOp, ids, x.dim(axis));
  Tensor y = empty(ids.shape(), x.dtype(), x.device());
  run(kOp, kernels(x).gather, GatherArgs{x.view(), ids.view(), y.view(), axis}, x.stream());
  return y;
}

Tensor scatter(const Tensor& x, Axis axis, const Tensor& ids, const Tensor& src) {
  return scatter_into("scatter", x, axis, ids, src, false);
}

Tensor scatter_add(const Tensor& x, Axis axis, const Tensor& ids, const Tensor& src) {
  return scatter_into("scatter_add", x, axis, ids, src, true);
}

Tensor index_select(const Tensor& x, Axis named_axis, const Tensor& ids) {
  constexpr const char* kOp = "index_select";
  check_ids_type(kOp, x, ids);
  const int axis = check_axis(kOp, "x", x, named_axis);
  check_rank(kOp, "ids", ids, 1);
  check_ids(kOp, ids, x.dim(axis));
  Tensor y = empty(with_size(x, axis, ids.dim(0)), x.dtype(), x.device());
  run(kOp, kernels(x).index_select, IndexSelectArgs{x.view(), ids.view(), y.view(), axis},
      x.stream());
  return y;
}

Tensor index_add(const Tensor& x, Axis named_axis, const Tensor& ids, const Tensor& src) {
  constexpr const char* kOp = "index_add";
  check_ids_type(kOp, x, ids);
  check_like(kOp, "x", x, "src", src);
  const int axis = check_axis(kOp, "x", x, named_axis);
  check_rank(kOp, "ids", ids, 1);
  check_shape(kOp, "src", src, with_size(x, axis, ids.dim(0)));
  check_ids(kOp, ids, x.dim(axis));
  Tensor y = copy_of(x);
  run(kOp, kernels(x).index_add, IndexAddArgs{ids.view(), src.view(), y.view(), axis}, x.stream());
  return y;
}

}  // namespace rbee
