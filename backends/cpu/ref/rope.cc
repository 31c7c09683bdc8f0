#include "backends/cpu/ref/rope.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

struct Angles {
  const float* cos;
  const float* sin;
  int64_t cos_step, sin_step;
  int64_t pairs;
};

// Row of the tables for token `time` of sequence `batch`.
Angles angles_at(const RopeArgs& args, int64_t batch, int64_t time) {
  const View& positions = args.positions;
  const int64_t row =
      positions ? positions.as<int32_t>()[batch * positions.stride(0) + time * positions.stride(1)]
                : time;
  return {.cos = args.cos.as<float>() + row * args.cos.stride(0),
          .sin = args.sin.as<float>() + row * args.sin.stride(0),
          .cos_step = args.cos.stride(1),
          .sin_step = args.sin.stride(1),
          .pairs = args.cos.size(1)};
}

template <typename T>
void rotate_head(const RopeArgs& args, const Angles& angles, const T* x, T* y) {
  const int64_t x_step = args.x.stride(-1);
  const int64_t y_step = args.y.stride(-1);
  const bool half = args.layout == RopeLayout::half;
  for (int64_t i = 0; i < angles.pairs; ++i) {
    const int64_t first = half ? i : 2 * i;
    const int64_t second = half ? i + angles.pairs : 2 * i + 1;
    const auto a = load(x[first * x_step]);
    const auto b = load(x[second * x_step]);
    const float cos = angles.cos[i * angles.cos_step];
    const float sin = angles.sin[i * angles.sin_step];
    y[first * y_step] = store<T>(a * cos - b * sin);
    y[second * y_step] = store<T>(a * sin + b * cos);
  }
  for (int64_t i = 2 * angles.pairs; i < args.x.size(-1); ++i) y[i * y_step] = x[i * x_step];
}

void run_rope(const RopeArgs& args, Stream&) {
  const View &x = args.x, &y = args.y;
  dispatch_floats("rope", x.dtype, [&]<typename T>() {
    for (int64_t batch = 0; batch < x.size(0); ++batch) {
      for (int64_t time = 0; time < x.size(2); ++time) {
        const Angles angles = angles_at(args, batch, time);
        for (int64_t head = 0; head < x.size(1); ++head) {
          rotate_head(args, angles,
                      x.as<T>() + batch * x.stride(0) + head * x.stride(1) + time * x.stride(2),
                      y.as<T>() + batch * y.stride(0) + head * y.stride(1) + time * y.stride(2));
        }
      }
    }
  });
}

}  // namespace

const Impl<RopeArgs> ref_rope{"ref", never_refuse, run_rope};

}  // namespace rbee::cpu
