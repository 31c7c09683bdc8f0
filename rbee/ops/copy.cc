// Operations of rbee/ops/elementwise.h that move or convert elements.
#include "rbee/ops/checks.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

// rows * cols elements, `stride` apart by rows, lie within a tensor of `size` elements.
bool fits(int64_t size, int64_t rows, int64_t cols, int64_t stride) {
  if (rows == 0 || cols == 0) return true;
  if (cols > size) return false;
  return stride == 0 || rows - 1 <= (size - cols) / stride;
}

void check_rows(const char* name, const Tensor& x, int64_t rows, int64_t cols, int64_t stride) {
  check_rank("copy2d", name, x, 1);
  check(x.contiguous(), "copy2d", name, " is ", x, " and not contiguous");
  check(fits(x.dim(0), rows, cols, stride), "copy2d", name, " is ", x, ", too small for ", rows,
        " rows of ", cols, ", ", stride, " apart");
}

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  check_defined("cast", "x", x);
  if (x.dtype() == dtype) return x;
  check(x.packing() == 0, "cast", "x is ", x, " and packed for a kernel");
  check(!is_quantized(dtype), "cast", "x is ", x, "; ", dtype, " is made by rbee/quant");
  if (is_quantized(x.dtype())) {
    check(is_float(dtype), "cast", "x is ", x, ", which becomes a float type, not ", dtype);
    check(x.contiguous(), "cast", "x is ", x, " and not contiguous");
  }
  Tensor y = empty(x.shape(), dtype, x.device());
  run("cast", kernels(x).cast, CastArgs{.x = x.view(), .y = y.view()}, x.stream());
  return y;
}

Tensor contiguous(const Tensor& x) {
  check_defined("contiguous", "x", x);
  if (x.contiguous()) return x;
  Tensor y = empty_like(x);
  copy_(y, x);
  return y;
}

void copy_(Tensor& y, const Tensor& x) {
  check_plain("copy", "y", y);
  check_like("copy", "y", y, "x", x);
  check_shape("copy", "x", x, y.shape());
  check_writable("copy", "y", y);
  run("copy", kernels(x).copy, CopyArgs{.x = x.view(), .y = y.view()}, x.stream());
}

void fill_(Tensor& y, double value) {
  check_plain("fill", "y", y);
  run("fill", kernels(y).fill, FillArgs{.y = y.view(), .value = value}, y.stream());
}

void copy2d_(Tensor& dst, const Tensor& src, int64_t rows, int64_t cols, int64_t dst_stride,
             int64_t src_stride) {
  check_plain("copy2d", "dst", dst);
  check_like("copy2d", "dst", dst, "src", src);
  check(rows >= 0 && cols >= 0, "copy2d", "rows is ", rows, ", cols is ", cols);
  check(src_stride >= 0 && dst_stride >= cols, "copy2d", "src_stride is ", src_stride,
        ", dst_stride is ", dst_stride, ", cols is ", cols);
  check_rows("dst", dst, rows, cols, dst_stride);
  check_rows("src", src, rows, cols, src_stride);
  const Copy2dArgs args{.src = src.view(),
                        .dst = dst.view(),
                        .rows = rows,
                        .cols = cols,
                        .src_stride = src_stride,
                        .dst_stride = dst_stride};
  run("copy2d", kernels(src).copy2d, args, src.stream());
}

}  // namespace rbee
