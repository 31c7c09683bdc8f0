// Times convolutions of images with the shapes of Stable Diffusion on the first GPU: every
// implementation that takes the arguments, one below the other.
//   conv_bench [--seconds S]
#include <cstdio>
#include <random>
#include <vector>

#include "backends/api/kernel_table.h"
#include "bench/gpu/gpu_timing.h"
#include "rbee/core/half.h"

namespace rbee::bench {
namespace {

// 3 x 3 filters with one pixel of padding; `size` pixels along each side of x.
struct Problem {
  int64_t batch, size, in, out;
  int64_t stride = 1;
  bool upsample = false;
};

Tensor random_tensor(const Shape& shape, Device& device) {
  std::mt19937 random(7);
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<f16> values(static_cast<size_t>(count));
  // A few thousand numbers over and over, in a length that no power of two divides.
  constexpr size_t kPeriod = 4099;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPeriod ? to_f16(static_cast<float>(random() % 2001) * 1e-3f - 1.0f)
                            : values[i - kPeriod];
  }
  return from_host<f16>(values, shape, device);
}

void time_problem(Device& device, double seconds, const Problem& p) {
  const int64_t out_size = p.upsample ? 2 * p.size : p.size / p.stride;
  const Tensor x = random_tensor({p.batch, p.size, p.size, p.in}, device);
  const Tensor weight = random_tensor({p.out, 3, 3, p.in}, device);
  const Tensor bias = random_tensor({p.out}, device);
  const Tensor y = empty({p.batch, out_size, out_size, p.out}, DType::f16, device);
  const ImageConvArgs args{.x = x.view(),
                           .weight = weight.view(),
                           .bias = bias.view(),
                           .channel_add = {},
                           .residual = {},
                           .y = y.view(),
                           .stride = p.stride,
                           .pad_top = 1,
                           .pad_left = 1,
                           .upsample = p.upsample};
  std::printf("%lld x %lld x %lld, %lld -> %lld%s%s\n", static_cast<long long>(p.batch),
              static_cast<long long>(p.size), static_cast<long long>(p.size),
              static_cast<long long>(p.in), static_cast<long long>(p.out),
              p.stride == 2 ? ", stride 2" : "", p.upsample ? ", enlarged" : "");
  for (const Impl<ImageConvArgs>& impl : device.kernels().image_conv) {
    if (const char* reason = refusal(impl, args, device.default_stream())) {
      std::printf("  %-10s %s\n", impl.name, reason);
      continue;
    }
    const double time =
        time_launches(device, seconds, [&](int) { impl.run(args, device.default_stream()); });
    const double flops = 2.0 * static_cast<double>(y.numel() * 9 * p.in);
    std::printf("  %-10s %9.1f us %8.1f TFLOP/s\n", impl.name, time * 1e6, flops / time * 1e-12);
  }
}

void run_all(double seconds) {
  Device& device = first_gpu();
  std::printf("%s\n", device.description().c_str());
  for (const Problem& p : {
           // Denoisers on two samples: of 512 x 512 and 1024 x 1024 pixels.
           Problem{2, 64, 320, 320},
           Problem{2, 64, 640, 320},
           Problem{2, 64, 960, 320},
           Problem{2, 64, 320, 320, 2},
           Problem{2, 32, 640, 640},
           Problem{2, 32, 1280, 640},
           Problem{2, 32, 1920, 640},
           Problem{2, 32, 640, 640, 1, true},
           Problem{2, 16, 1280, 1280},
           Problem{2, 16, 2560, 1280},
           Problem{2, 8, 1280, 1280},
           Problem{2, 8, 2560, 1280},
           Problem{2, 128, 320, 320},
           Problem{2, 128, 960, 320},
           Problem{2, 64, 640, 640},
           Problem{2, 64, 1280, 640},
           Problem{2, 32, 1280, 1280},
           Problem{2, 32, 2560, 1280},
           // VAEs.
           Problem{1, 64, 512, 512},
           Problem{1, 256, 512, 512},
           Problem{1, 512, 256, 256},
           Problem{1, 256, 256, 256, 1, true},
           Problem{1, 512, 128, 128},
           Problem{1, 1024, 128, 128},
       }) {
    time_problem(device, seconds, p);
  }
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  return rbee::bench::run_bench(argc, argv, 0.02, &rbee::bench::run_all);
}
