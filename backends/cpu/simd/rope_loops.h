#pragma once
// Rotary embedding of f32 heads. Include after a vec header.

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kRopeGrain = 16384;  // elements

// Pairs (i, i + pairs).
RB_INLINE void rotate_half(const float* x, float* y, const float* cos, const float* sin,
                           int64_t pairs) {
  int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    const Vec a = load(x + i);
    const Vec b = load(x + pairs + i);
    const Vec c = load(cos + i);
    const Vec s = load(sin + i);
    store(y + i, fma(a, c, -(b * s)));
    store(y + pairs + i, fma(a, s, b * c));
  }
  for (; i < pairs; ++i) {
    const float a = x[i];
    const float b = x[pairs + i];
    y[i] = a * cos[i] - b * sin[i];
    y[pairs + i] = a * sin[i] + b * cos[i];
  }
}

// Pairs (2 i, 2 i + 1).
RB_INLINE void rotate_interleaved(const float* x, float* y, const float* cos, const float* sin,
                                  int64_t pairs) {
  int64_t i = 0;
  for (; i + kLanes / 2 <= pairs; i += kLanes / 2) {
    const Vec both = load(x + 2 * i);
    const Vec turned = swap_pairs(both) * load_doubled(sin + i);
    store(y + 2 * i, fma_sub_add(both, load_doubled(cos + i), turned));
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    y[2 * i] = a * cos[i] - b * sin[i];
    y[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

const char* refuse_rope(const RopeArgs& args) {
  if (args.x.dtype != DType::f32) return "takes f32";
  if (args.x.strides[3] != 1 || args.y.strides[3] != 1) return "takes heads without gaps";
  if (args.cos.strides[1] != 1 || args.sin.strides[1] != 1) return "takes tables without gaps";
  return nullptr;
}

void rotate_token(const RopeArgs& args, int64_t batch, int64_t time) {
  const View &x = args.x, &y = args.y;
  const int64_t pairs = args.cos.sizes[1];
  int64_t row = time;
  if (args.positions.data != nullptr) {
    row = static_cast<const int32_t*>(
        args.positions.data)[batch * args.positions.strides[0] + time * args.positions.strides[1]];
  }
  const float* cos = static_cast<const float*>(args.cos.data) + row * args.cos.strides[0];
  const float* sin = static_cast<const float*>(args.sin.data) + row * args.sin.strides[0];
  for (int64_t head = 0; head < x.sizes[1]; ++head) {
    const float* from = static_cast<const float*>(x.data) + batch * x.strides[0] +
                        head * x.strides[1] + time * x.strides[2];
    float* to = static_cast<float*>(y.data) + batch * y.strides[0] + head * y.strides[1] +
                time * y.strides[2];
    if (args.layout == RopeLayout::half) {
      rotate_half(from, to, cos, sin, pairs);
    } else {
      rotate_interleaved(from, to, cos, sin, pairs);
    }
    for (int64_t i = 2 * pairs; i < x.sizes[3]; ++i) to[i] = from[i];
  }
}

void run_rope(const RopeArgs& args, Stream&) {
  const int64_t times = args.x.sizes[2];
  const int64_t token = args.x.sizes[1] * args.x.sizes[3];
  ThreadPool::shared().parallel_for(args.x.sizes[0] * times, kRopeGrain / (token + 1) + 1,
                                    [&](int64_t begin, int64_t end, int) {
                                      for (int64_t i = begin; i < end; ++i) {
                                        rotate_token(args, i / times, i % times);
                                      }
                                    });
}

}  // namespace
}  // namespace rbee::cpu
