#include "backends/gpu/launch.h"

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

bool may_overlap(const Launch& what, StreamRecord& stream) {
  const bool overlap = what.reads_ahead == ReadsAhead::nothing ||
                       (what.reads_ahead == ReadsAhead::constants && !stream.constants_under_way);
  if (!overlap) stream.constants_under_way = false;
  if (what.writes_constants) stream.constants_under_way = true;
  return overlap;
}

}  // namespace

void launch_raw(Stream& stream, const Launch& what, void* params) {
  if (what.grid.x == 0 || what.grid.y == 0 || what.grid.z == 0) return;
  GpuDevice& device = device_of(stream);
  device.use();
  void* kernel = device.kernel_cache().find(what.family, what.kernel.view(), what.shared_bytes);
  const bool overlap = may_overlap(what, device.streams().of(stream.handle));
  try {
    device.driver().launch({.kernel = kernel,
                            .grid = what.grid,
                            .threads = what.threads,
                            .shared_bytes = what.shared_bytes,
                            .overlap = overlap},
                           stream.handle, params);
  } catch (const Error& error) {
    fail(error.code(), what.op, what.kernel.view(), " on ", device.id(), ": ", error.what());
  }
}

}  // namespace rbee::gpu
