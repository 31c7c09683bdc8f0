#pragma once
// image_group_norm. One pass over the image gives the sums of each channel, relative to the
// image's first pixel so that little cancels, and one writes the result. Include after a vec
// header.

#include "backends/api/args_image.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/storage.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kNormChunk = 256;           // pixels whose sums are kept in float
constexpr int64_t kImageNormGrain = 1 << 14;  // elements that one thread does alone

// One image's channels, each array `channels` long.
struct NormRows {
  float *mean, *scale, *bias;
};

struct NormPlan {
  int64_t batch, pixels, channels, chunks;  // chunks of one image

  int64_t partial_floats() const { return batch * chunks * 2 * channels; }
  int64_t floats() const { return partial_floats() + 3 * batch * channels; }
};

RB_INLINE NormPlan plan_norm(const View& x) {
  return {x.sizes[0], x.sizes[1], x.sizes[2], (x.sizes[1] + kNormChunk - 1) / kNormChunk};
}

RB_INLINE NormRows rows_of_image(const NormPlan& plan, float* memory, int64_t n) {
  float* first = memory + plan.partial_floats() + 3 * n * plan.channels;
  return {first, first + plan.channels, first + 2 * plan.channels};
}

template <typename T>
RB_INLINE const T* pixel_at(const View& x, int64_t n, int64_t p) {
  return static_cast<const T*>(x.data) + n * x.strides[0] + p * x.strides[1];
}

// Sums and sums of squares of x - pivot over `count` pixels, kVecs vectors of channels.
template <int kVecs, typename T>
RB_INLINE void sum_channels(const T* x, int64_t step, int64_t count, const T* pivot, float* sums,
                            float* squares) {
  Vec base[kVecs], sum[kVecs], square[kVecs];
  for (int v = 0; v < kVecs; ++v) {
    base[v] = load(pivot + v * kLanes);
    sum[v] = square[v] = splat(0.0f);
  }
  for (int64_t p = 0; p < count; ++p) {
    for (int v = 0; v < kVecs; ++v) {
      const Vec d = load(x + p * step + v * kLanes) - base[v];
      sum[v] = sum[v] + d;
      square[v] = fma(d, d, square[v]);
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    store(sums + v * kLanes, sum[v]);
    store(squares + v * kLanes, square[v]);
  }
}

template <typename T>
RB_INLINE void sum_last_channels(const T* x, int64_t step, int64_t count, int64_t lanes,
                                 const T* pivot, float* sums, float* squares) {
  const Vec base = load_first(pivot, lanes);
  Vec sum = splat(0.0f), square = splat(0.0f);
  for (int64_t p = 0; p < count; ++p) {
    const Vec d = load_first(x + p * step, lanes) - base;
    sum = sum + d;
    square = fma(d, d, square);
  }
  store_first(sums, sum, lanes);
  store_first(squares, square, lanes);
}

// Chunk `index` of all images.
template <typename T>
void sum_chunk(const View& x, const NormPlan& plan, int64_t index, float* memory) {
  const int64_t n = index / plan.chunks, first = index % plan.chunks * kNormChunk;
  const int64_t left = plan.pixels - first;
  const int64_t count = left < kNormChunk ? left : kNormChunk;
  const int64_t step = x.strides[1], channels = plan.channels;
  const T *pixel = pixel_at<T>(x, n, first), *pivot = pixel_at<T>(x, n, 0);
  float *sums = memory + index * 2 * channels, *squares = sums + channels;
  int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
    sum_channels<4>(pixel + c, step, count, pivot + c, sums + c, squares + c);
  }
  for (; c + kLanes <= channels; c += kLanes) {
    sum_channels<1>(pixel + c, step, count, pivot + c, sums + c, squares + c);
  }
  if (c == channels) return;
  sum_last_channels(pixel + c, step, count, channels - c, pivot + c, sums + c, squares + c);
}

// A channel's mean and sum of squared distances from it, of all chunks.
struct ChannelMoments {
  double mean, squares;
};

template <typename T>
RB_INLINE ChannelMoments moments_of(const View& x, const NormPlan& plan, const float* memory,
                                    int64_t n, int64_t channel) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < plan.chunks; ++i) {
    const float* sums = memory + (n * plan.chunks + i) * 2 * plan.channels + channel;
    sum += static_cast<double>(sums[0]);
    squares += static_cast<double>(sums[plan.channels]);
  }
  const auto count = static_cast<double>(plan.pixels);
  const auto pivot = static_cast<double>(load1(pixel_at<T>(x, n, 0) + channel));
  return {pivot + sum / count, squares - sum * sum / count};
}

// Of channels [first, first + width) of image n: what each of its elements is normalised with.
template <typename T>
void finish_group(const ImageGroupNormArgs& args, const NormPlan& plan, float* memory, int64_t n,
                  int64_t first, int64_t width) {
  const auto count = static_cast<double>(plan.pixels);
  double mean = 0, squares = 0;
  for (int64_t c = first; c < first + width; ++c) {
    mean += moments_of<T>(args.x, plan, memory, n, c).mean / static_cast<double>(width);
  }
  for (int64_t c = first; c < first + width; ++c) {
    const ChannelMoments channel = moments_of<T>(args.x, plan, memory, n, c);
    squares += channel.squares + count * (channel.mean - mean) * (channel.mean - mean);
  }
  const double variance = squares / (count * static_cast<double>(width));
  const double scale = 1 / __builtin_sqrt(variance + static_cast<double>(args.eps));
  const auto* weight = static_cast<const T*>(args.weight.data);
  const auto* bias = static_cast<const T*>(args.bias.data);
  const NormRows rows = rows_of_image(plan, memory, n);
  for (int64_t c = first; c < first + width; ++c) {
    const double w =
        weight != nullptr ? static_cast<double>(load1(weight + c * args.weight.strides[0])) : 1;
    rows.mean[c] = static_cast<float>(mean);
    rows.scale[c] = static_cast<float>(scale * w);
    rows.bias[c] = bias != nullptr ? load1(bias + c * args.bias.strides[0]) : 0.0f;
  }
}

template <NormActivation kActivation>
RB_INLINE Vec normalized(Vec x, Vec mean, Vec scale, Vec bias) {
  const Vec value = fma(x - mean, scale, bias);
  if constexpr (kActivation == NormActivation::silu) {
    return value / (splat(1.0f) + exp(-value));
  } else {
    return value;
  }
}

template <NormActivation kActivation, typename T>
RB_INLINE void normalize_pixel(const T* x, const NormRows& rows, T* y, int64_t channels) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    store(y + c, normalized<kActivation>(load(x + c), load(rows.mean + c), load(rows.scale + c),
                                         load(rows.bias + c)));
  }
  if (c == channels) return;
  const int64_t n = channels - c;
  const Vec last =
      normalized<kActivation>(load_first(x + c, n), load_first(rows.mean + c, n),
                              load_first(rows.scale + c, n), load_first(rows.bias + c, n));
  store_first(y + c, last, n);
}

template <NormActivation kActivation, typename T>
void normalize_image(const ImageGroupNormArgs& args) {
  const NormPlan plan = plan_norm(args.x);
  const int64_t width = plan.channels / args.groups;
  ThreadPool& pool = ThreadPool::shared();
  auto* memory = reinterpret_cast<float*>(
      thread_workspace(plan.floats() * static_cast<int64_t>(sizeof(float))));
  const int64_t chunk_size = kNormChunk * plan.channels;
  pool.parallel_for(plan.batch * plan.chunks, kImageNormGrain / chunk_size + 1,
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t i = begin; i < end; ++i) sum_chunk<T>(args.x, plan, i, memory);
                    });
  const int64_t group_size = 2 * width * plan.chunks;
  pool.parallel_for(plan.batch * args.groups, kImageNormGrain / group_size + 1,
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t i = begin; i < end; ++i) {
                        finish_group<T>(args, plan, memory, i / args.groups,
                                        i % args.groups * width, width);
                      }
                    });
  pool.parallel_for(plan.batch * plan.pixels, kImageNormGrain / plan.channels + 1,
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t n = i / plan.pixels;
                        normalize_pixel<kActivation, T>(
                            pixel_at<T>(args.x, n, i % plan.pixels), rows_of_image(plan, memory, n),
                            static_cast<T*>(args.y.data) + i * plan.channels, plan.channels);
                      }
                    });
}

const char* refuse_image_group_norm(const ImageGroupNormArgs& args) {
  if (!is_storage(args.x.dtype)) return "takes f32, f16 and bf16";
  if (args.x.strides[2] != 1) return "takes pixels without gaps";
  return nullptr;
}

void run_image_group_norm(const ImageGroupNormArgs& args, Stream&) {
  if (args.x.numel() == 0) return;
  with_storage(args.x.dtype, [&]<typename T>() {
    if (args.activation == NormActivation::silu) {
      normalize_image<NormActivation::silu, T>(args);
    } else {
      normalize_image<NormActivation::none, T>(args);
    }
  });
}

}  // namespace
}  // namespace rbee::cpu
