// Times linear layers of many rows on the first GPU: every implementation that takes the arguments,
// one below the other.
//   gemm_bench [--seconds S]
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "bench/gpu/gpu_timing.h"
#include "rbee/core/half.h"
#include "rbee/ops/linear.h"

namespace rbee::bench {
namespace {

struct Problem {
  int64_t rows, outs, depth;
  DType weight = DType::bf16;
};

// Small numbers of both signs: power, and so clocks, depend on the bits.
Tensor random_matrix(int64_t rows, int64_t columns, Device& device) {
  std::mt19937 random(7);
  std::vector<bf16> values(static_cast<size_t>(rows * columns));
  for (bf16& value : values) {
    value = to_bf16(static_cast<float>(random() % 2001) * 1e-3f - 1.0f);
  }
  return from_host<bf16>(values, {rows, columns}, device);
}

// Blocks of any bytes are numbers; here all scales are 0x2c2c (0.065 in f16).
Tensor packed_matrix(const Problem& p, Device& device) {
  const Tensor weight = empty({p.outs, p.depth}, p.weight, device);
  device.fill_bytes(weight.view().data, 0x2c, static_cast<size_t>(weight.bytes()),
                    device.default_stream());
  return pack_weight(weight);
}

void time_problem(Device& device, double seconds, const Problem& p) {
  const Tensor x = random_matrix(p.rows, p.depth, device);
  const Tensor weight =
      p.weight == DType::bf16 ? random_matrix(p.outs, p.depth, device) : packed_matrix(p, device);
  const Tensor y = empty({p.rows, p.outs}, DType::bf16, device);
  const LinearPart part{.weight = weight.view(), .bias = {}, .y = y.view()};
  const bool e4m3 = p.weight == DType::f8_g128;
  const LinearArgs args{
      .x = x.view(), .parts = {&part, 1}, .may_round_to = e4m3 ? DType::f8e4m3 : DType::f32};
  std::printf("%lld x %lld x %lld, weight %s\n", static_cast<long long>(p.rows),
              static_cast<long long>(p.outs), static_cast<long long>(p.depth), name(p.weight));
  for (const Impl<LinearArgs>& impl : device.kernels().linear) {
    if (const char* reason = refusal(impl, args, device.default_stream())) {
      std::printf("  %-10s %s\n", impl.name, reason);
      continue;
    }
    const double time =
        time_launches(device, seconds, [&](int) { impl.run(args, device.default_stream()); });
    const double flops = 2.0 * static_cast<double>(p.rows * p.outs) * static_cast<double>(p.depth);
    std::printf("  %-10s %9.1f us %8.1f TFLOP/s\n", impl.name, time * 1e6, flops / time * 1e-12);
  }
}

void run_all(double seconds) {
  Device& device = first_gpu();
  std::printf("%s\n", device.description().c_str());
  for (const Problem& p :
       {Problem{8192, 8192, 8192}, Problem{2048, 4096, 4096}, Problem{2048, 14336, 4096},
        Problem{512, 4096, 14336}, Problem{256, 4096, 14336}, Problem{256, 28672, 4096},
        Problem{128, 6144, 4096}, Problem{64, 4096, 4096},
        Problem{8192, 8192, 8192, DType::f8_g128}, Problem{2048, 14336, 4096, DType::f8_g128},
        Problem{512, 4096, 14336, DType::f8_g128}, Problem{128, 28672, 4096, DType::f8_g128},
        Problem{2048, 4096, 4096, DType::q4_k}, Problem{2048, 4096, 4096, DType::q8_0},
        Problem{512, 4096, 14336, DType::q4_k}}) {
    time_problem(device, seconds, p);
  }
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  return rbee::bench::run_bench(argc, argv, 0.5, &rbee::bench::run_all);
}
