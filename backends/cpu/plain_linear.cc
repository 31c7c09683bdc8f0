#include "backends/cpu/plain_linear.h"

#include <algorithm>
#include <utility>

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/run_first.h"
#include "backends/cpu/thread_pool.h"

#if defined(__x86_64__) || defined(__aarch64__)

namespace rbee::cpu {
namespace {

// From this many rows of x on, a product of matrices pays, which copies the weight first.
constexpr int64_t kProductRows = 8;
// A thread takes at least this many numbers of a weight at a time.
constexpr int64_t kNumbersPerTask = 8 * 1024;

const char* refuse(const LinearArgs& args, Isa isa) {
  if (args.x.dtype != DType::f32) return "takes f32";
  for (const LinearPart& part : args.parts) {
    if (part.weight.packing != 0) return "reads plain weights only";
    if (part.weight.dtype != DType::f32) return "takes weights of f32";
    if (part.bias) return "adds no bias";
  }
  return missing_isa(isa);
}

void run_dots(const View& x, const LinearPart& part, void (*dots)(const DotProducts&)) {
  const int64_t in = x.size(1), outs = part.weight.size(0);
  const int64_t grain = std::max<int64_t>(kNumbersPerTask / std::max<int64_t>(in, 1), 1);
  ThreadPool::shared().parallel_for(outs, grain, [&](int64_t begin, int64_t end, int) {
    dots({.x = x.as<const float>(),
          .rows = x.size(0),
          .weight = part.weight.as<const float>() + begin * in,
          .outs = end - begin,
          .in = in,
          .y = part.y.as<float>() + begin,
          .y_stride = outs});
  });
}

void run(const LinearArgs& args, void (*dots)(const DotProducts&), Stream& stream) {
  for (const LinearPart& part : args.parts) {
    if (args.x.size(0) < kProductRows) {
      run_dots(args.x, part, dots);
      continue;
    }
    View across = part.weight;  // (in, out)
    std::swap(across.sizes[0], across.sizes[1]);
    std::swap(across.strides[0], across.strides[1]);
    run_first(cpu_kernels().matmul, MatmulArgs{.a = args.x, .b = across, .y = part.y}, stream);
  }
}

}  // namespace

#ifdef __x86_64__
const Impl<LinearArgs> avx2_plain_linear{
    .name = "plain_avx2",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avx2); },
    .run = [](const LinearArgs& args, Stream& stream) { run(args, avx2_dot_products, stream); }};
const Impl<LinearArgs> avx512_plain_linear{
    .name = "plain_avx512",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avx512); },
    .run = [](const LinearArgs& args, Stream& stream) { run(args, avx512_dot_products, stream); }};
#else
const Impl<LinearArgs> neon_plain_linear{
    .name = "plain_neon",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::neon); },
    .run = [](const LinearArgs& args, Stream& stream) { run(args, neon_dot_products, stream); }};
#endif

}  // namespace rbee::cpu

#endif
