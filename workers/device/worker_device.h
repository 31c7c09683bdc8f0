#pragma once
// The device that a worker's flags name.

#include <cstdint>
#include <functional>
#include <optional>

#include "backends/api/registry.h"

namespace rbee::workers {

class WorkerDevice {
 public:
  struct Wanted {
    int32_t threads = 0;  // --threads
    bool any = false;     // --device auto
    int32_t device = 0;   // --device N, of the backend
  };

  // Sets the number of threads, and registers the CPU and `backend`. Call it before other threads
  // use devices.
  WorkerDevice(const BackendInfo& backend, const Wanted& wanted);

  // Bytes, for the choice of a model's quantization; of any device the most. Throws as
  // get_device().
  int64_t free_memory() const;
  // needed: as for engine::choose_device().
  Device& open(const std::function<int64_t()>& needed) const;
  std::optional<DeviceId> named() const;  // absent: --device auto

 private:
  DeviceId id_;
  bool any_;
};

}  // namespace rbee::workers
