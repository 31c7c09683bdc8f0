#pragma once
// layer_norm over rows. Include after a vec header.

#include "backends/api/args_norm.h"
#include "backends/api/impl.h"
#include "backends/cpu/merged_axes.h"
#include "backends/cpu/simd/storage.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kLayerNormGrain = 16384;  // elements that one thread does alone

// f(x) summed over a row, in four sums.
template <typename T, typename F>
RB_INLINE float sum_row(const T* x, int64_t dim, F f) {
  Vec sums[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= dim; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) sums[j] = sums[j] + f(load(x + i + j * kLanes));
  }
  for (; i + kLanes <= dim; i += kLanes) sums[0] = sums[0] + f(load(x + i));
  float total = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < dim; ++i) {
    float lanes[kLanes];
    store(lanes, f(splat(load1(x + i))));
    total += lanes[0];
  }
  return total;
}

// An optional vector of the norm.
template <typename T>
struct NormVector {
  const T* data;
  float absent;

  RB_INLINE Vec at(int64_t i) const { return data != nullptr ? load(data + i) : splat(absent); }
  RB_INLINE float one(int64_t i) const { return data != nullptr ? load1(data + i) : absent; }
};

template <typename T>
RB_INLINE void layer_norm_row(const T* x, T* y, int64_t dim, float eps, NormVector<T> weight,
                              NormVector<T> bias) {
  const float mean = sum_row(x, dim, [](Vec v) { return v; }) / static_cast<float>(dim);
  const float squares = sum_row(x, dim, [mean](Vec v) {
    const Vec apart = v - splat(mean);
    return apart * apart;
  });
  const float scale = 1.0f / __builtin_sqrtf(squares / static_cast<float>(dim) + eps);
  int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    const Vec normal = (load(x + i) - splat(mean)) * splat(scale);
    store(y + i, fma(normal, weight.at(i), bias.at(i)));
  }
  for (; i < dim; ++i) {
    store1(y + i, (load1(x + i) - mean) * scale * weight.one(i) + bias.one(i));
  }
}

// Rows, without their last axis.
RB_INLINE View outer_axes(View view) {
  --view.rank;
  return view;
}

const char* refuse_layer_norm(const LayerNormArgs& args) {
  if (!is_storage(args.x.dtype)) return "takes f32, f16 and bf16";
  for (const View* view : {&args.x, &args.y, &args.weight, &args.bias}) {
    if (view->data != nullptr && view->strides[view->rank - 1] != 1) {
      return "takes rows and vectors without gaps";
    }
  }
  return nullptr;
}

template <typename T>
void norm_all(const LayerNormArgs& args) {
  const int64_t dim = args.x.sizes[args.x.rank - 1];
  const View x = outer_axes(args.x), y = outer_axes(args.y);
  const View* const views[] = {&y, &x};
  const MergedAxes<2> axes = merged_axes(views);
  const NormVector<T> weight{static_cast<const T*>(args.weight.data), 1.0f};
  const NormVector<T> bias{static_cast<const T*>(args.bias.data), 0.0f};
  const int64_t inner = axes.columns();
  const auto at = [&](int view, int64_t row) {
    return axes.row_offset(view, row / inner) + row % inner * axes.column_step(view);
  };
  ThreadPool::shared().parallel_for(
      axes.rows() * inner, kLayerNormGrain / dim + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          layer_norm_row(static_cast<const T*>(args.x.data) + at(1, row),
                         static_cast<T*>(args.y.data) + at(0, row), dim, args.eps, weight, bias);
        }
      });
}

void run_layer_norm(const LayerNormArgs& args, Stream&) {
  if (args.x.numel() == 0) return;
  with_storage(args.x.dtype, [&]<typename T>() { norm_all<T>(args); });
}

}  // namespace
}  // namespace rbee::cpu
