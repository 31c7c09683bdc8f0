// Times linear layers of chosen experts on the first GPU, every implementation that takes them: the
// weights' bytes read in a second, each expert's once, and arithmetic.
//   expert_bench [--seconds S]
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "bench/gpu/gpu_timing.h"
#include "rbee/ops/experts.h"

namespace rbee::bench {
namespace {

constexpr int64_t kColdBytes = int64_t{256} << 20;  // more than any GPU's last cache

struct Layer {
  int64_t experts, chosen, outs, in;
};

// All experts get equally many choices.
Tensor even_choices(int64_t tokens, const Layer& layer, Device& device) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens * layer.chosen));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(static_cast<int64_t>(i) % layer.experts);
  }
  return from_host<int32_t>(ids, {tokens, layer.chosen}, device);
}

void time_tokens(Device& device, double seconds, double copy_rate, const Layer& layer,
                 const std::vector<Tensor>& weights, DType type, int64_t tokens) {
  const Tensor x = filled({tokens, layer.in}, DType::bf16, device);
  const Tensor ids = even_choices(tokens, layer, device);
  const Tensor y = empty({tokens * layer.chosen, layer.outs}, DType::bf16, device);
  ExpertPart part{.weight = weights[0].view(), .bias = {}, .y = y.view()};
  const ExpertLinearArgs args{.x = x.view(), .ids = ids.view(), .parts = {&part, 1}};
  const int64_t taken = std::min(layer.experts, ids.numel());
  const auto bytes = static_cast<double>(taken * layer.outs * row_bytes(type, layer.in));
  const double flops = 2.0 * static_cast<double>(ids.numel() * layer.outs * layer.in);
  std::printf("%lld tokens, %lld of %lld experts %lld x %lld, weight %s\n",
              static_cast<long long>(tokens), static_cast<long long>(layer.chosen),
              static_cast<long long>(layer.experts), static_cast<long long>(layer.outs),
              static_cast<long long>(layer.in), name(type));
  for (const Impl<ExpertLinearArgs>& impl : device.kernels().expert_linear) {
    if (refusal(impl, args, device.default_stream()) != nullptr) continue;
    const double time = time_launches(device, seconds, [&](int i) {
      part.weight = weights[static_cast<size_t>(i) % weights.size()].view();
      impl.run(args, device.default_stream());
    });
    std::printf("  %-8s %9.1f us %6.0f GB/s  %5.1f %% of a copy  %6.1f TFLOP/s\n", impl.name,
                time * 1e6, bytes / time * 1e-9, 100 * bytes / time / copy_rate,
                flops / time * 1e-12);
  }
}

void time_layer(Device& device, double seconds, double copy_rate, const Layer& layer, DType type) {
  const int64_t bytes = layer.experts * layer.outs * row_bytes(type, layer.in);
  std::vector<Tensor> weights;
  for (int64_t held = 0; held < kColdBytes; held += bytes) {
    weights.push_back(pack_experts(
        layer.experts, [&](int64_t) { return filled({layer.outs, layer.in}, type, device); }));
  }
  for (const int64_t tokens : {1, 16, 64, 512, 2048}) {
    time_tokens(device, seconds, copy_rate, layer, weights, type, tokens);
  }
}

void run_all(double seconds) {
  Device& device = first_gpu();
  const double copy_rate = copy_bandwidth(device, seconds);
  std::printf("%s: copies %.0f GB/s\n", device.description().c_str(), copy_rate * 1e-9);
  const Layer qwen3{.experts = 128, .chosen = 8, .outs = 768, .in = 2048};
  const Layer gpt_oss{.experts = 32, .chosen = 4, .outs = 2880, .in = 2880};
  const Layer mixtral{.experts = 8, .chosen = 2, .outs = 14336, .in = 4096};
  for (const DType type : {DType::bf16, DType::q8_0, DType::q4_k}) {
    time_layer(device, seconds, copy_rate, qwen3, type);
  }
  time_layer(device, seconds, copy_rate, gpt_oss, DType::mxfp4);
  time_layer(device, seconds, copy_rate, mixtral, DType::bf16);
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  return rbee::bench::run_bench(argc, argv, 0.2, &rbee::bench::run_all);
}
