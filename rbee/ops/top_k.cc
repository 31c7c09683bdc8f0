#include "rbee/ops/top_k.h"

#include <limits>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_x(const Tensor& x, int64_t k) {
  check_plain("top_k", "x", x);
  check_rank("top_k", "x", x, 2);
  const bool taken = x.dtype() == DType::f32 || x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  if (!taken) fail(Code::unsupported, "top_k", "x is ", x, ", wanted f32, f16 or bf16; cast it");
  check(k >= 1 && k <= x.dim(1) && k <= kMaxTopK, "top_k", "k is ", k, ", x is ", x,
        "; k is at least 1, at most the row's length and ", kMaxTopK);
  check(x.dim(1) <= std::numeric_limits<int32_t>::max(), "top_k", "x is ", x,
        ", longer than an i32 index reaches");
}

}  // namespace

void top_k_(const TopK& out, const Tensor& x, const Tensor& scale) {
  check_defined("top_k", "values", out.values);
  check_rank("top_k", "values", out.values, 2);
  check_x(x, out.values.dim(1));
  const int64_t rows = x.dim(0);
  check_shape("top_k", "values", out.values, {rows, out.values.dim(1)});
  check_shape("top_k", "ids", out.ids, {rows, out.values.dim(1)});
  check(out.values.dtype() == DType::f32 && out.ids.dtype() == DType::i32, "top_k", "values is ",
        out.values, " and ids is ", out.ids, ", wanted f32 and i32");
  for (const Tensor* row : {&out.sum, &scale}) {
    if (!row->defined()) continue;
    const char* what = row == &scale ? "scale" : "sum";
    check_shape("top_k", what, *row, {rows});
    check(row->dtype() == DType::f32, "top_k", what, " is ", *row, ", wanted f32");
  }
  for (const Tensor* other : {&out.values, &out.ids, &out.sum, &scale}) {
    if (other->defined()) check_same_device("top_k", "x", x, "an operand", *other);
  }
  const TopKArgs args{.x = x.view(),
                      .scale = view_or_absent(scale),
                      .values = out.values.view(),
                      .ids = out.ids.view(),
                      .sum = view_or_absent(out.sum)};
  run("top_k", kernels(x).top_k, args, x.stream());
}

TopK top_k(const Tensor& x, int64_t k, RowSum row_sum, const Tensor& scale) {
  check_x(x, k);
  const int64_t rows = x.dim(0);
  TopK out{.values = empty({rows, k}, DType::f32, x.device()),
           .ids = empty({rows, k}, DType::i32, x.device()),
           .sum = {}};
  if (row_sum == RowSum::wanted) out.sum = empty({rows}, DType::f32, x.device());
  top_k_(out, x, scale);
  return out;
}

}  // namespace rbee
