// Times attention on the first GPU: tensor arithmetic for many queries, and the bandwidth of
// decoding over a paged cache beside a copy's, measured in the same run.
//   attention_bench [--seconds S]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/api/registry.h"
#include "backends/linked/linked_backends.h"
#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/ops/attention.h"

namespace rbee {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLaunches = 20;                       // recorded as one graph
constexpr int64_t kColdBytes = int64_t{256} << 20;  // more than any GPU's last cache

Device& first_gpu() {
  register_linked_backends();
  for (const BackendInfo& backend : backends()) {
    if (backend.kind != DeviceKind::cpu && backend.device_count() > 0) return backend.device(0);
  }
  fail(Code::not_found, "attention_bench", "there is no GPU");
}

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

// Seconds of one call of `launch`: the median over replays of a graph of kLaunches calls, so that
// no time of the host counts.
double time_launches(Device& device, double seconds, const std::function<void(int)>& launch) {
  Stream& stream = device.default_stream();
  launch(0);
  device.synchronize(stream);
  device.begin_capture(stream);
  for (int i = 0; i < kLaunches; ++i) launch(i);
  void* graph = device.end_capture(stream);
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    const auto from = Clock::now();
    device.launch_capture(graph, stream);
    device.synchronize(stream);
    times.push_back(std::chrono::duration<double>(Clock::now() - from).count() / kLaunches);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  device.destroy_capture(graph);
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

// Bytes read and written in a second by a copy within the device.
double copy_bandwidth(Device& device, double seconds) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Tensor from = zeros({kBytes / 2}, DType::f16, device);
  const Tensor to = zeros({kBytes / 2}, DType::f16, device);
  const double time = time_launches(device, seconds, [&](int) {
    device.copy(to.view().data, from.view().data, kBytes, CopyKind::device_to_device,
                device.default_stream());
  });
  return 2.0 * static_cast<double>(kBytes) / time;
}

void time_dense(Device& device, double seconds, const Shape& shape, bool causal) {
  const Tensor q = random_tensor(shape, device);
  const Tensor k = random_tensor(shape, device);
  const Tensor v = random_tensor(shape, device);
  AttentionOptions options;
  options.causal = causal;
  const double time = time_launches(device, seconds, [&](int) { attention(q, k, v, options); });
  const double pairs = static_cast<double>(element_count(shape)) * static_cast<double>(shape[2]);
  const double flops = 4.0 * pairs * (causal ? 0.5 : 1.0);
  std::printf("attention f16 (%s)%s: %.1f us, %.1f TFLOP/s\n", cat(shape).c_str(),
              causal ? " causal" : "", time * 1e6, flops / time * 1e-12);
}

// One query over `keys` keys of a paged cache; caches alternate, so that none is met in L2.
void time_decode(Device& device, double seconds, int64_t keys, double copy_rate) {
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
  for (int64_t i = 0; i < blocks; ++i) table[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  std::shuffle(table.begin(), table.end(), std::mt19937(7));
  const std::vector<int32_t> starts{0, 1}, lens{static_cast<int32_t>(keys)};
  const PagedBatch batch{.seq_starts = from_host<int32_t>(starts, {2}, device),
                         .kv_lens = from_host<int32_t>(lens, {1}, device),
                         .block_table = from_host<int32_t>(table, {1, blocks}, device),
                         .slots = {}};
  const Tensor q = random_tensor({1, kHeads, kDim}, device);
  const double time = time_launches(device, seconds, [&](int i) {
    const auto at = static_cast<size_t>(i % copies);
    paged_attention(q, k[at], v[at], batch, PagedAttentionOptions{});
  });
  const double rate = static_cast<double>(bytes) / time;
  std::printf("decode f16 %lld keys, 32 heads on 8 of 128: %.1f us, %.0f GB/s, %.1f %% of a copy\n",
              static_cast<long long>(keys), time * 1e6, rate * 1e-9, 100 * rate / copy_rate);
}

void run_all(double seconds) {
  Device& device = first_gpu();
  const double copy_rate = copy_bandwidth(device, seconds);
  std::printf("%s: copies %.0f GB/s\n", device.description().c_str(), copy_rate * 1e-9);
  time_dense(device, seconds, {1, 32, 4096, 128}, true);
  time_dense(device, seconds, {1, 32, 4096, 128}, false);
  time_dense(device, seconds, {2, 10, 4096, 64}, false);
  time_dense(device, seconds, {2, 10, 4096, 64}, true);
  for (const int64_t keys : {4096, 32768}) time_decode(device, seconds, keys, copy_rate);
}

}  // namespace
}  // namespace rbee

int main(int argc, char** argv) {
  try {
    const bool given = argc == 3 && std::string(argv[1]) == "--seconds";
    if (argc != 1 && !given) {
      std::fprintf(stderr, "usage: attention_bench [--seconds S]\n");
      return 2;
    }
    rbee::run_all(given ? std::stod(argv[2]) : 0.5);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
