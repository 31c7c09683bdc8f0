#include "backends/gpu/slot.h"

#include <mutex>
#include <set>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "rbee/core/log.h"

namespace rbee::gpu {

uint64_t queued_on(const Stream& stream) {
  return device_of(stream).streams().of(stream.handle).queued;
}

void note_replaced(const char* impl, const char* other, const Error& why) {
  static std::mutex mutex;
  static auto* const told = new std::set<std::pair<const char*, const char*>>;
  {
    const std::scoped_lock lock(mutex);
    if (!told->emplace(impl, other).second) return;
  }
  log(LogLevel::warn, "the device does not take a kernel, another runs in its place",
      {{"implementation", impl}, {"instead", other}, {"error", why.what()}});
}

}  // namespace rbee::gpu
