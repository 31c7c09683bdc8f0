#include "backends/cpu/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/simd/exp_sum.h"
#include "backends/cpu/thread_pool.h"
#include "backends/shared/math.h"

namespace rbee::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kChunk = 64;  // elements compared with the threshold at once

struct Found {
  float value;
  int32_t id;
};

bool comes_first(const Found& a, const Found& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

// True when one of `count` elements is above `threshold`. Without a branch inside, so that
// compilers use vectors.
bool any_above(const float* x, int64_t count, float threshold) {
  int32_t above = 0;
  for (int64_t i = 0; i < count; ++i) above |= static_cast<int32_t>(x[i] > threshold);
  return above != 0;
}

// The k first by comes_first, in that order. Most chunks of a long row lose against the last of
// those found, which a heap keeps in front.
void find_largest(const float* x, int64_t n, size_t k, std::vector<Found>& found) {
  found.clear();
  const auto begin = static_cast<int64_t>(k);
  for (int64_t i = 0; i < begin; ++i) {
    found.push_back({std::isnan(x[i]) ? kLowest : x[i], static_cast<int32_t>(i)});
  }
  std::make_heap(found.begin(), found.end(), comes_first);
  for (int64_t chunk = begin; chunk < n; chunk += kChunk) {
    const int64_t end = std::min(n, chunk + kChunk);
    if (!any_above(x + chunk, end - chunk, found.front().value)) continue;
    for (int64_t i = chunk; i < end; ++i) {
      // A later element of the same value comes after those found.
      if (!(x[i] > found.front().value)) continue;
      std::pop_heap(found.begin(), found.end(), comes_first);
      found.back() = {x[i], static_cast<int32_t>(i)};
      std::push_heap(found.begin(), found.end(), comes_first);
    }
  }
  std::sort_heap(found.begin(), found.end(), comes_first);
}

float plain_exp_sum(const float* x, int64_t n, float top, float scale) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] > kLowest) sum += shared::exp(scale * (x[i] - top));
  }
  return static_cast<float>(sum);
}

float sum_of(const float* x, int64_t n, float top, float scale) {
  if (!(top > kLowest)) return 0;
#ifdef __x86_64__
  if (cpu_isa() >= Isa::avx512) return avx512_exp_sum(x, n, top, scale);
  if (cpu_isa() >= Isa::avx2) return avx2_exp_sum(x, n, top, scale);
#elif defined(__aarch64__)
  if (cpu_isa() >= Isa::neon) return neon_exp_sum(x, n, top, scale);
#endif
  return plain_exp_sum(x, n, top, scale);
}

void run_row(const TopKArgs& args, int64_t row, std::vector<Found>& found) {
  const float* x = args.x.as<const float>() + row * args.x.stride(0);
  find_largest(x, args.x.size(1), static_cast<size_t>(args.values.size(1)), found);
  float* values = args.values.as<float>() + row * args.values.stride(0);
  int32_t* ids = args.ids.as<int32_t>() + row * args.ids.stride(0);
  for (const Found& each : found) {
    *values = each.value;
    *ids = each.id;
    values += args.values.stride(1);
    ids += args.ids.stride(1);
  }
  if (!args.sum) return;
  const float scale = args.scale ? args.scale.as<float>()[row * args.scale.stride(0)] : 1.0f;
  args.sum.as<float>()[row * args.sum.stride(0)] =
      sum_of(x, args.x.size(1), found.front().value, scale);
}

void run_top_k(const TopKArgs& args, Stream&) {
  ThreadPool::shared().parallel_for(args.x.size(0), 1, [&](int64_t begin, int64_t end, int) {
    std::vector<Found> found;
    for (int64_t row = begin; row < end; ++row) run_row(args, row, found);
  });
}

const char* refuse_top_k(const TopKArgs& args) {
  if (args.x.dtype != DType::f32 || args.x.stride(1) != 1) return "takes f32 rows without gaps";
  return nullptr;
}

}  // namespace

const Impl<TopKArgs> fast_top_k{"fast", refuse_top_k, run_top_k};

}  // namespace rbee::cpu
