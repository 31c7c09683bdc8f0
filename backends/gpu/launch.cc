#include "backends/gpu/launch.h"

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"

namespace rbee::gpu {

void launch_raw(Stream& stream, const Launch& what, void* params) {
  if (what.grid.x == 0 || what.grid.y == 0 || what.grid.z == 0) return;
  GpuDevice& device = device_of(stream);
  device.use();
  void* kernel = device.kernel_cache().find(what.family, what.kernel.view(), what.shared_bytes);
  try {
    device.driver().launch(kernel, what.grid, what.threads, what.shared_bytes, stream.handle,
                           params);
  } catch (const Error& error) {
    fail(error.code(), what.op, what.kernel.view(), " on ", device.id(), ": ", error.what());
  }
}

}  // namespace rbee::gpu
