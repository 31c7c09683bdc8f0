#include "workers/device/worker_device.h"

#include "backends/cpu/control_groups.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/engine/common/device_choice.h"
#include "workers/common/threads.h"

namespace rbee::workers {

WorkerDevice::WorkerDevice(const BackendInfo& backend, const Wanted& wanted)
    // There is one CPU, whatever number a hive gives it.
    : id_{backend.kind, backend.kind == DeviceKind::cpu ? 0 : wanted.device}, any_(wanted.any) {
  cpu::set_thread_count(
      thread_count(wanted.threads, processors(cpu::ControlGroups().processors())));
  register_backend(cpu::cpu_backend());
  register_backend(backend);
}

int64_t WorkerDevice::free_memory() const {
  return any_ ? engine::most_free_memory(backends()) : get_device(id_).memory().free;
}

std::optional<DeviceId> WorkerDevice::named() const {
  return any_ ? std::nullopt : std::optional(id_);
}

Device& WorkerDevice::open(const std::function<int64_t()>& needed) const {
  return any_ ? engine::open_chosen_device(needed) : get_device(id_);
}

}  // namespace rbee::workers
