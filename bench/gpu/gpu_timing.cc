#include "bench/gpu/gpu_timing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "backends/api/registry.h"
#include "backends/linked/linked_backends.h"
#include "rbee/core/error.h"

namespace rbee::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLaunches = 20;  // captured as one graph

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Device& first_gpu() {
  register_linked_backends();
  for (const BackendInfo& backend : backends()) {
    if (backend.kind != DeviceKind::cpu && backend.device_count() > 0) return backend.device(0);
  }
  fail(Code::not_found, "bench", "there is no GPU");
}

Tensor filled(const Shape& shape, DType dtype, Device& device) {
  const Tensor x = empty(shape, dtype, device);
  device.fill_bytes(x.view().data, 0x2c, static_cast<size_t>(x.bytes()), device.default_stream());
  return x;
}

int run_bench(int argc, char** argv, double seconds, const std::function<void(double)>& run) {
  try {
    const bool given = argc == 3 && std::string(argv[1]) == "--seconds";
    if (argc != 1 && !given) {
      std::fprintf(stderr, "usage: %s [--seconds S]\n", argv[0]);
      return 2;
    }
    run(given ? std::stod(argv[2]) : seconds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

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
    times.push_back(seconds_since(from) / kLaunches);
  } while (seconds_since(start) < seconds);
  device.destroy_capture(graph);
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

double copy_bandwidth(Device& device, double seconds) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Tensor from = zeros({kBytes}, DType::u8, device);
  const Tensor to = zeros({kBytes}, DType::u8, device);
  const double time = time_launches(device, seconds, [&](int) {
    device.copy(to.view().data, from.view().data, kBytes, CopyKind::device_to_device,
                device.default_stream());
  });
  return 2.0 * static_cast<double>(kBytes) / time;
}

}  // namespace rbee::bench
