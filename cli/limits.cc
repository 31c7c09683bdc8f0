#include "cli/limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backends/cpu/peak.h"
#include "rbee/ops/linear.h"
#include "rbee/ops/random.h"
#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds per call: the least of a few batches, each synchronised.
template <typename Work>
double fastest(Device& device, int calls, Work work) {
  double least = 1e30;
  for (int round = 0; round < 6; ++round) {
    device.synchronize(device.default_stream());
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    device.synchronize(device.default_stream());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / calls;
    if (round > 0) least = std::min(least, seconds);  // the first is to warm up
  }
  return least;
}

double copy_speed(Device& device) {
  const int64_t bytes = std::min(int64_t{1} << 30, device.memory().free / 4);
  const Tensor from = zeros({bytes}, DType::u8, device);
  const Tensor to = empty({bytes}, DType::u8, device);
  const double seconds = fastest(device, 10, [&] {
    device.copy(to.buffer()->data(), from.buffer()->data(), static_cast<size_t>(bytes),
                CopyKind::device_to_device, device.default_stream());
  });
  return 2 * static_cast<double>(bytes) / seconds;
}

// Random data: multiplying zeros takes less power and runs faster.
double product_speed(Device& device, DType dtype, int64_t size) {
  const Tensor x = random_normal({size, size}, dtype, device, {.seed = 1});
  const Tensor weight = random_normal({size, size}, dtype, device, {.seed = 2});
  const double n = static_cast<double>(size);
  return 2 * n * n * n / fastest(device, 5, [&] { linear(x, weight); });
}

HardwareLimits measure_gpu(Device& device) {
  const double copy = copy_speed(device);
  return {.bytes_per_second = copy,
          .weights_bytes_per_second = copy,
          .f32_flops = product_speed(device, DType::f32, 4096),
          .bf16_flops = product_speed(device, DType::bf16, 8192),
          .gpu = true};
}

HardwareLimits measure_cpu(int threads, double weight_bytes) {
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  const cpu::Peak peak = cpu::measure_peak(threads);
  // Small weights stay in a cache, so the limit is measured with their size.
  const double weights = cpu::measure_read(threads, static_cast<int64_t>(weight_bytes));
  return {.bytes_per_second = peak.read_bytes_per_second,
          .weights_bytes_per_second = weights,
          .f32_flops = peak.f32_flops,
          .bf16_flops = peak.bf16_flops,
          .int8_ops = peak.int8_ops};
}

}  // namespace

Unit HardwareLimits::unit_for(std::string_view type) const {
  const Unit f32{f32_flops, "f32 arithmetic"};
  const Unit bf16 = bf16_flops > 0 ? Unit{bf16_flops, "bf16 arithmetic"} : f32;
  if (type == "f32") return f32;
  // GPUs multiply f16 as fast as bf16, and block types after widening.
  if (gpu || type == "bf16") return bf16;
  if (type == "f16") {
    // Tiles multiply the weight's two bf16 parts by the three of x, without the smallest product.
    const Unit parts{bf16_flops / 5, "bf16 arithmetic in five parts"};
    return parts.operations_per_second > f32.operations_per_second ? parts : f32;
  }
  return int8_ops > 0 ? Unit{int8_ops, "int8 arithmetic"} : f32;
}

double measure_bus(Device& device) {
  constexpr size_t kBytes = size_t{64} << 20;
  HostBuffer from;
  from.reserve(device, kBytes);
  std::memset(from.as<std::byte>(), 1, kBytes);
  const Tensor to = empty({int64_t{kBytes}}, DType::u8, device);
  return static_cast<double>(kBytes) / fastest(device, 4, [&] {
           device.copy(to.buffer()->data(), from.as<std::byte>(), kBytes, CopyKind::host_to_device,
                       device.default_stream());
         });
}

HardwareLimits measure_limits(Device& device, int threads, double weight_bytes) {
  return device.host_accessible() ? measure_cpu(threads, weight_bytes) : measure_gpu(device);
}

}  // namespace rbee::tools
