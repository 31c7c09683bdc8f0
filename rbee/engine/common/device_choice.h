#pragma once
// The device of `--device auto`.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backends/api/registry.h"

namespace rbee::engine {

struct DeviceChoice {
  DeviceId id;
  int64_t free = 0;    // bytes of device memory, when it was chosen
  int64_t needed = 0;  // bytes; 0 = not asked, since there is no GPU
  // What was chosen and why, in one line. Empty: the program has one backend, so there was no
  // choice.
  std::string reason;
  std::string faults;  // why GPUs and backends cannot be used, separated by "; "; may be empty
};

struct GpuOffer {
  DeviceId id;
  DeviceOffer offer;
};

// The GPU on which `needed` bytes are free. Of several, one with memory of its own goes before one
// inside a processor, then the one with the most free memory, then the first. Null: none fits.
const GpuOffer* best_gpu(std::span<const GpuOffer> gpus, int64_t needed);

// Among the devices of `backends`, which has the CPU: best_gpu() of those that are not experimental
// (rbee/core/experimental.h), else the CPU. `needed`: bytes of device memory that the model takes;
// called only if there is such a GPU.
DeviceChoice choose_device(std::span<const BackendInfo> backends,
                           const std::function<int64_t()>& needed);

// The CPU, which all programs have.
Device& host_device();

// Bytes free on the device that a small model gets: what a model's quantization is chosen for.
int64_t most_free_memory(std::span<const BackendInfo> backends);

// choose_device() of all registered backends, opened. Logs the reason.
Device& open_chosen_device(const std::function<int64_t()>& needed);

}  // namespace rbee::engine
