// Times linear layers of few rows (decoding), and of many on packed weights, on the first GPU:
// bytes of weights read in a second, beside what a copy moves in the same run.
//   linear_bench [--seconds S]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/api/registry.h"
#include "bench/gpu/gpu_timing.h"
#include "rbee/ops/linear.h"

namespace rbee::bench {
namespace {

constexpr int64_t kColdBytes = int64_t{256} << 20;  // more than any GPU's last cache

struct Problem {
  int64_t outs, in;
  DType weight;
  int64_t rows = 1;
};

// Bits that have nothing to do with each other: points are looked up by them.
Tensor codes(const Shape& shape, DType dtype, Device& device) {
  Tensor out = empty(shape, dtype, get_device({DeviceKind::cpu, 0}));
  std::mt19937 random(1);
  auto* words = static_cast<uint32_t*>(out.view().data);
  std::generate_n(words, out.bytes() / 4, std::ref(random));
  return out.to(device);
}

void time_problem(Device& device, double seconds, double copy_rate, const Problem& p) {
  const int64_t bytes = p.outs * row_bytes(p.weight, p.in);
  const auto copies = static_cast<size_t>((kColdBytes + bytes - 1) / bytes);
  std::vector<Tensor> weights;
  weights.reserve(copies);
  if (is_quantized(p.weight)) {
    const Tensor weight = codes({p.outs, p.in}, p.weight, device);
    while (weights.size() < copies) weights.push_back(pack_weight(weight));
  }
  while (weights.size() < copies) weights.push_back(filled({p.outs, p.in}, p.weight, device));
  const Tensor x = filled({p.rows, p.in}, DType::bf16, device);
  const Tensor y = empty({p.rows, p.outs}, DType::bf16, device);
  LinearPart part{.weight = weights[0].view(), .bias = {}, .y = y.view()};
  const LinearArgs args{.x = x.view(), .parts = {&part, 1}};
  std::printf("%lld x %lld x %lld, weight %s\n", static_cast<long long>(p.rows),
              static_cast<long long>(p.outs), static_cast<long long>(p.in), name(p.weight));
  const auto time_all = [&](const char* what, const auto& impls, const auto& of) {
    for (const auto& impl : impls) {
      if (refusal(impl, of, device.default_stream()) != nullptr) continue;
      const double time = time_launches(device, seconds, [&](int i) {
        part.weight = weights[static_cast<size_t>(i) % copies].view();
        impl.run(of, device.default_stream());
      });
      const double rate = static_cast<double>(bytes) / time;
      const double flops = 2.0 * static_cast<double>(p.rows * p.outs * p.in) / time;
      std::printf("  %s%-10s %9.1f us %6.0f GB/s  %5.1f %% of a copy  %6.1f TFLOP/s\n", what,
                  impl.name, time * 1e6, rate * 1e-9, 100 * rate / copy_rate, flops * 1e-12);
    }
  };
  time_all("", device.kernels().linear, args);
  if (p.rows > 1) return;
  time_all("fused ", device.kernels().fused_linear,
           FusedLinearArgs{.x = x.view(), .norm_weight = {}, .residual = {}, .parts = {&part, 1}});
}

void run_all(double seconds) {
  Device& device = first_gpu();
  const double copy_rate = copy_bandwidth(device, seconds);
  std::printf("%s: copies %.0f GB/s\n", device.description().c_str(), copy_rate * 1e-9);
  const Shape shapes[] = {{4096, 4096}, {14336, 4096}, {4096, 14336}, {128256, 4096}};
  for (const Shape& shape : shapes) {
    for (const DType weight :
         {DType::bf16, DType::q8_0, DType::q4_k, DType::q4_0, DType::q6_k, DType::f8_g128}) {
      time_problem(device, seconds, copy_rate, {shape[0], shape[1], weight});
    }
  }
  for (const int64_t rows : {2, 4, 8, 12, 16, 32, 64}) {
    for (const Shape& shape : shapes) {
      time_problem(device, seconds, copy_rate, {shape[0], shape[1], DType::bf16, rows});
    }
  }
  // A layer's, queries, keys and values together.
  const Shape layer[] = {{4096, 4096}, {6144, 4096}, {28672, 4096}, {4096, 14336}};
  for (const DType weight : {DType::q8_0, DType::q4_k, DType::f8_g128}) {
    for (const Shape& shape : layer) {
      for (const int64_t rows : {2, 4, 8, 16, 32, 48, 64}) {
        time_problem(device, seconds, copy_rate, {shape[0], shape[1], weight, rows});
      }
    }
  }
  for (const DType weight : {DType::q8_0, DType::q4_k, DType::f8_g128}) {
    for (const Shape& shape : layer) {
      for (const int64_t rows : {128, 256, 512, 2048, 4608}) {
        time_problem(device, seconds, copy_rate, {shape[0], shape[1], weight, rows});
      }
    }
  }
  for (const DType weight :
       {DType::f16, DType::f32, DType::f8e4m3, DType::q4_1, DType::q5_0, DType::q5_1, DType::q2_k,
        DType::q3_k, DType::q5_k, DType::q8_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4}) {
    time_problem(device, seconds, copy_rate, {14336, 4096, weight});
  }
  for (const DType weight :
       {DType::iq1_s, DType::iq1_m, DType::iq2_xxs, DType::iq2_xs, DType::iq2_s, DType::iq3_xxs,
        DType::iq3_s, DType::tq1_0, DType::tq2_0, DType::nvfp4}) {
    for (const int64_t rows : {1, 4, 8, 16, 64, 512, 2048}) {
      time_problem(device, seconds, copy_rate, {28672, 4096, weight, rows});
    }
  }
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  return rbee::bench::run_bench(argc, argv, 0.2, &rbee::bench::run_all);
}
