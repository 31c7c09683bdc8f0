#include "rbee/engine/common/device_watch.h"

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::engine {

MemoryInfo DeviceWatch::memory() const {
  if (lost_ || device_.host_accessible()) return {};
  try {
    const MemoryInfo memory = device_.memory();
    memory_worked_ = true;
    return memory;
  } catch (const Error& error) {
    if (error.code() == Code::device && memory_worked_ && !lost_.exchange(true)) {
      log(LogLevel::error, "the device is lost", {{"error", error.what()}});
    }
    return {};
  }
}

}  // namespace rbee::engine
