#pragma once
// rms_norm and add_rms_norm over rows of f32. Include after a vec header.

#include "backends/api/args_norm.h"
#include "backends/api/impl.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

// Rows below this many elements run on the calling thread: waking the pool costs more.
constexpr int64_t kNormGrain = 16384;

struct Squares {
  Vec sums[4] = {splat(0), splat(0), splat(0), splat(0)};

  RB_INLINE void add(int i, Vec x) { sums[i] = fma(x, x, sums[i]); }
  RB_INLINE float total() const { return sum((sums[0] + sums[1]) + (sums[2] + sums[3])); }
};

RB_INLINE float sum_of_squares(const float* x, int64_t dim) {
  Squares squares;
  int64_t i = 0;
  for (; i + 4 * kLanes <= dim; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) squares.add(j, load(x + i + j * kLanes));
  }
  for (; i + kLanes <= dim; i += kLanes) squares.add(0, load(x + i));
  if (i < dim) squares.add(1, load_first(x + i, dim - i));
  return squares.total();
}

RB_INLINE void add_row(const float* x, const float* residual, float* sum, int64_t dim) {
  int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) store(sum + i, load(x + i) + load(residual + i));
  for (; i < dim; ++i) sum[i] = x[i] + residual[i];
}

RB_INLINE void normalize_row(const float* x, const float* weight, float* y, int64_t dim,
                             float eps) {
  const float mean = sum_of_squares(x, dim) / static_cast<float>(dim);
  const float scale = 1.0f / __builtin_sqrtf(mean + eps);
  int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    store(y + i, load(x + i) * splat(scale) * load(weight + i));
  }
  for (; i < dim; ++i) y[i] = x[i] * scale * weight[i];
}

RB_INLINE bool unit_rows(const View& x) {
  return x.dtype == DType::f32 && x.strides[x.rank - 1] == 1;
}

RB_INLINE int64_t rows_in_grain(int64_t dim) {
  return kNormGrain / (dim + 1) + 1;
}

const char* refuse_rms_norm(const RmsNormArgs& args) {
  if (!unit_rows(args.x) || !unit_rows(args.y)) return "takes f32 rows without gaps";
  if (args.weight.dtype != DType::f32 || args.weight.strides[0] != 1) {
    return "takes a contiguous f32 weight";
  }
  if (args.x.rank > 3) return "takes up to three axes";
  return nullptr;
}

void run_rms_norm(const RmsNormArgs& args, Stream&) {
  const View &x = args.x, &y = args.y;
  const int64_t dim = args.weight.sizes[0];
  const int64_t inner = x.rank >= 2 ? x.sizes[x.rank - 2] : 1;
  const int64_t outer = x.rank == 3 ? x.sizes[0] : 1;
  const auto start = [inner](const View& view, int64_t row) {
    const int64_t inner_step = view.rank >= 2 ? view.strides[view.rank - 2] : 0;
    const int64_t outer_step = view.rank == 3 ? view.strides[0] : 0;
    return static_cast<float*>(view.data) + row / inner * outer_step + row % inner * inner_step;
  };
  ThreadPool::shared().parallel_for(
      inner * outer, rows_in_grain(dim), [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          normalize_row(start(x, row), static_cast<const float*>(args.weight.data), start(y, row),
                        dim, args.eps);
        }
      });
}

const char* refuse_add_rms_norm(const AddRmsNormArgs& args) {
  for (const View* view : {&args.x, &args.residual, &args.sum, &args.y, &args.weight}) {
    if (!unit_rows(*view)) return "takes f32 rows without gaps";
  }
  return nullptr;
}

void run_add_rms_norm(const AddRmsNormArgs& args, Stream&) {
  const int64_t dim = args.weight.sizes[0];
  const auto start = [](const View& view, int64_t row) {
    return static_cast<float*>(view.data) + row * view.strides[0];
  };
  ThreadPool::shared().parallel_for(
      args.x.sizes[0], rows_in_grain(dim), [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          float* sum = start(args.sum, row);
          add_row(start(args.x, row), start(args.residual, row), sum, dim);
          normalize_row(sum, static_cast<const float*>(args.weight.data), start(args.y, row), dim,
                        args.eps);
        }
      });
}

}  // namespace
}  // namespace rbee::cpu
