// Times attention on the first GPU: tensor arithmetic for many queries with the memory that the
// call needs, the bandwidth of decoding over a paged cache beside a copy's of the same run, and
// attention with sinks and over latents by each implementation.
//   attention_bench [--seconds S] [--all] [--json]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/gpu/gpu_device.h"
#include "bench/gpu/gpu_timing.h"
#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/ops/attention.h"

namespace rbee::bench {
namespace {

constexpr int64_t kColdBytes = int64_t{256} << 20;  // more than any GPU's last cache

struct Options {
  double seconds = 0.5;  // for each figure
  bool json = false;     // one object a line
  bool all = false;      // dense attention by every implementation that takes it
};

int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Values like a model's after its norms: around 0, none large.
Tensor random_tensor(const Shape& shape, Device& device) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<f16> values(static_cast<size_t>(element_count(shape)));
  for (f16& value : values) value = to_f16(normal(random));
  return from_host<f16>(values, shape, device);
}

struct DenseShape {
  int64_t batch, heads, queries, keys, dim;
  bool causal = false;
};

struct DenseTime {
  const char* implementation;
  double seconds;
  int64_t peak_bytes;
};

void print_dense(const Options& options, const DenseShape& shape, const DenseTime& time) {
  const auto number = [](int64_t x) { return static_cast<long long>(x); };
  const double pairs = static_cast<double>(shape.batch * shape.heads * shape.queries * shape.dim) *
                       static_cast<double>(shape.keys);
  const double rate = 4.0 * pairs * (shape.causal ? 0.5 : 1.0) / time.seconds;
  if (options.json) {
    std::printf(
        "{\"test\":\"attention\",\"shape\":[%lld,%lld,%lld,%lld],\"keys\":%lld,\"causal\":%s,"
        "\"implementation\":\"%s\",\"seconds\":%.6g,\"flops_per_second\":%.6g,"
        "\"peak_bytes\":%lld}\n",
        number(shape.batch), number(shape.heads), number(shape.queries), number(shape.dim),
        number(shape.keys), shape.causal ? "true" : "false", time.implementation, time.seconds,
        rate, number(time.peak_bytes));
    return;
  }
  std::printf(
      "attention f16 (%lld, %lld, %lld, %lld), %lld keys%s: %s %.1f us, %.1f TFLOP/s, %.1f MB\n",
      number(shape.batch), number(shape.heads), number(shape.queries), number(shape.dim),
      number(shape.keys), shape.causal ? ", causal" : "", time.implementation, time.seconds * 1e6,
      rate * 1e-12, static_cast<double>(time.peak_bytes) * 1e-6);
}

// By the first implementation that takes it, which is the one that models get; with --all by each.
void time_dense(gpu::GpuDevice& device, const Options& options, const DenseShape& shape) {
  const int64_t before = device.allocator_stats().in_use;
  // Heads side by side, as layers write them.
  const auto heads = [&](int64_t tokens) {
    return random_tensor({shape.batch, tokens, shape.heads, shape.dim}, device)
        .permute({0, 2, 1, 3});
  };
  const Tensor q = heads(shape.queries), k = heads(shape.keys), v = heads(shape.keys);
  device.reset_allocator_peak();
  const Tensor y = attention(q, k, v, {.causal = shape.causal});
  // q, k, v, the result and what the kernels work in.
  const int64_t peak_bytes = device.allocator_stats().peak_in_use - before;
  AttentionArgs args{};
  args.q = q.view();
  args.k = k.view();
  args.v = v.view();
  args.y = y.view();
  args.causal = shape.causal;
  args.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
  for (const Impl<AttentionArgs>& impl : device.kernels().attention) {
    if (refusal(impl, args, device.default_stream()) != nullptr) continue;
    const double time = time_launches(device, options.seconds,
                                      [&](int) { impl.run(args, device.default_stream()); });
    print_dense(options, shape, {impl.name, time, peak_bytes});
    if (!options.all) break;
  }
}

// One query over `keys` keys of a paged cache; caches alternate, so that none is met in L2.
void time_decode(Device& device, const Options& options, int64_t keys, double copy_rate) {
  constexpr int64_t kHeads = 32, kKvHeads = 8, kDim = 128, kBlock = 16;
  const int64_t blocks = keys / kBlock;
  const int64_t bytes = 2 * keys * kKvHeads * kDim * 2;
  const auto copies = static_cast<int>((kColdBytes + bytes - 1) / bytes);
  std::vector<Tensor> k, v;
  for (int i = 0; i < copies; ++i) {
    k.push_back(random_tensor({blocks, kKvHeads, kBlock, kDim}, device));
    v.push_back(random_tensor({blocks, kKvHeads, kBlock, kDim}, device));
  }
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(7));
  const std::vector<int32_t> starts{0, 1}, lens{static_cast<int32_t>(keys)};
  const PagedBatch batch{.seq_starts = from_host<int32_t>(starts, {2}, device),
                         .kv_lens = from_host<int32_t>(lens, {1}, device),
                         .block_table = from_host<int32_t>(table, {1, blocks}, device),
                         .slots = {}};
  const Tensor q = random_tensor({1, kHeads, kDim}, device);
  const double time = time_launches(device, options.seconds, [&](int i) {
    const auto at = static_cast<size_t>(i % copies);
    paged_attention(q, k[at], v[at], batch, PagedAttentionOptions{});
  });
  const double rate = static_cast<double>(bytes) / time;
  if (options.json) {
    std::printf("{\"test\":\"decode\",\"keys\":%lld,\"seconds\":%.6g,\"bytes_per_second\":%.6g}\n",
                static_cast<long long>(keys), time, rate);
    return;
  }
  std::printf("decode f16 %lld keys, 32 heads on 8 of 128: %.1f us, %.0f GB/s, %.1f %% of a copy\n",
              static_cast<long long>(keys), time * 1e6, rate * 1e-9, 100 * rate / copy_rate);
}

// A sequence with `queries` at the end of `keys` keys, in f16.
struct PagedShape {
  const char* test;
  int64_t queries, keys;
  int64_t heads, kv_heads, dim;
  int64_t window = 0;
  bool sinks = false;
};

void print_implementation(const Options& options, const PagedShape& shape, const char* name,
                          double time) {
  const auto number = [](int64_t x) { return static_cast<long long>(x); };
  if (options.json) {
    std::printf(
        "{\"test\":\"%s\",\"queries\":%lld,\"keys\":%lld,\"heads\":%lld,\"window\":%lld,"
        "\"implementation\":\"%s\",\"seconds\":%.6g}\n",
        shape.test, number(shape.queries), number(shape.keys), number(shape.heads),
        number(shape.window), name, time);
    return;
  }
  std::printf(
      "%s f16 %lld queries, %lld keys, window %lld, %lld heads on %lld of %lld: %s %.1f us\n",
      shape.test, number(shape.queries), number(shape.keys), number(shape.window),
      number(shape.heads), number(shape.kv_heads), number(shape.dim), name, time * 1e6);
}

// What a sequence's attention costs by each implementation that takes it.
void time_implementations(Device& device, const Options& options, const PagedShape& shape) {
  constexpr int64_t kBlock = 16;
  const int64_t blocks = shape.keys / kBlock;
  const Tensor k = random_tensor({blocks, shape.kv_heads, kBlock, shape.dim}, device);
  const Tensor v = random_tensor({blocks, shape.kv_heads, kBlock, shape.dim}, device);
  const Tensor q = random_tensor({shape.queries, shape.heads, shape.dim}, device);
  const Tensor y = random_tensor({shape.queries, shape.heads, shape.dim}, device);
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  const std::vector<int32_t> starts{0, static_cast<int32_t>(shape.queries)};
  const std::vector<int32_t> lens{static_cast<int32_t>(shape.keys)};
  const Tensor seq_starts = from_host<int32_t>(starts, {2}, device);
  const Tensor kv_lens = from_host<int32_t>(lens, {1}, device);
  const Tensor block_table = from_host<int32_t>(table, {1, blocks}, device);
  const std::vector<float> ones(static_cast<size_t>(shape.heads), 1.0f);
  const Tensor sinks = from_host<float>(ones, {shape.heads}, device);
  PagedAttentionArgs args{};
  args.q = q.view();
  args.k_cache = k.view();
  args.v_cache = v.view();
  args.seq_starts = seq_starts.view();
  args.kv_lens = kv_lens.view();
  args.block_table = block_table.view();
  if (shape.sinks) args.sinks = sinks.view();
  args.y = y.view();
  args.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
  args.window = shape.window;
  for (const Impl<PagedAttentionArgs>& impl : device.kernels().paged_attention) {
    if (refusal(impl, args, device.default_stream()) != nullptr) continue;
    const double time = time_launches(device, options.seconds,
                                      [&](int) { impl.run(args, device.default_stream()); });
    print_implementation(options, shape, impl.name, time);
  }
}

// DeepSeek's latents (V2-Lite has 16 heads, V2 and V3 have 128): prompts and single steps.
void time_latents(Device& device, const Options& options) {
  for (const int64_t heads : {16, 128}) {
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{2048, 2048}, {1, 2048}, {1, 8192}, {1, 32768}}) {
      time_implementations(device, options,
                           {.test = "latents",
                            .queries = queries,
                            .keys = keys,
                            .heads = heads,
                            .kv_heads = 1,
                            .dim = 576});
    }
  }
}

// Long rows, then what UNets ask for with guidance: Stable Diffusion 1.5 at 512 x 512 and SDXL at
// 1024 x 1024, of pixels among themselves and of pixels and a prompt; then FLUX.1 and Gemma 3.
constexpr DenseShape kDense[] = {
    {1, 32, 4096, 4096, 128, true}, {1, 32, 4096, 4096, 128}, {2, 10, 4096, 4096, 64},
    {2, 10, 4096, 4096, 64, true},  {2, 8, 4096, 4096, 40},   {2, 8, 4096, 77, 40},
    {2, 8, 1024, 1024, 80},         {2, 8, 1024, 77, 80},     {2, 8, 256, 256, 160},
    {2, 8, 256, 77, 160},           {2, 10, 4096, 77, 64},    {2, 20, 1024, 1024, 64},
    {2, 20, 1024, 77, 64},          {1, 24, 4608, 4608, 128}, {1, 4, 2048, 2048, 256, true}};

void run_all(const Options& options) {
  auto& device = dynamic_cast<gpu::GpuDevice&>(first_gpu());
  const double copy_rate = copy_bandwidth(device, options.seconds);
  if (options.json) {
    std::printf("{\"test\":\"copy\",\"bytes_per_second\":%.6g}\n", copy_rate);
  } else {
    std::printf("%s: copies %.0f GB/s\n", device.description().c_str(), copy_rate * 1e-9);
  }
  for (const DenseShape& shape : kDense) time_dense(device, options, shape);
  for (const int64_t keys : {4096, 32768}) time_decode(device, options, keys, copy_rate);
  for (const int64_t window : {0, 128}) {
    for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{2048, 2048}, {1, 8192}}) {
      time_implementations(device, options,
                           {.test = "sinks",
                            .queries = queries,
                            .keys = keys,
                            .heads = 64,
                            .kv_heads = 8,
                            .dim = 64,
                            .window = window,
                            .sinks = true});
    }
  }
  time_latents(device, options);
}

// Throws invalid_argument at anything that is not an option.
Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string given = argv[i];
    if (given == "--json") {
      options.json = true;
    } else if (given == "--all") {
      options.all = true;
    } else if (given == "--seconds" && i + 1 < argc) {
      options.seconds = std::stod(argv[++i]);
    } else {
      fail(Code::invalid_argument, "attention_bench", "usage: [--seconds S] [--all] [--json]");
    }
  }
  return options;
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  try {
    rbee::bench::run_all(rbee::bench::parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
