#include "backends/gpu/launch.h"

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

bool may_be_under_way(ReadsAhead what, const StreamRecord& stream) {
  switch (what) {
    case ReadsAhead::nothing:
      return false;
    case ReadsAhead::packed_weights:
      return stream.packed_weights_under_way;
    case ReadsAhead::tables:
      return stream.tables_under_way;
    case ReadsAhead::constants:
      return stream.packed_weights_under_way || stream.tables_under_way || stream.floats_under_way;
    case ReadsAhead::anything:
      break;
  }
  return true;
}

bool may_overlap(const Launch& what, bool waits_itself, StreamRecord& stream) {
  const bool waits = !waits_itself || may_be_under_way(what.reads_ahead, stream);
  if (waits) {
    stream.floats_under_way = stream.tables_under_way = stream.packed_weights_under_way = false;
  }
  const bool anything = what.writes == Writes::anything;
  if (anything || what.writes == Writes::floats) stream.floats_under_way = true;
  if (anything) stream.tables_under_way = true;
  if (what.writes == Writes::packed_weights) stream.packed_weights_under_way = true;
  return !waits;
}

}  // namespace

void launch_raw(Stream& stream, const Launch& what, const void* params, uint32_t params_bytes) {
  if (what.grid.x == 0 || what.grid.y == 0 || what.grid.z == 0) return;
  GpuDevice& device = device_of(stream);
  try {
    device.use();
    const KernelCache::Found kernel =
        device.kernel_cache().find(what.family, what.kernel.view(), what.shared_bytes);
    StreamRecord& record = device.streams().of(stream.handle);
    const bool overlap = may_overlap(what, kernel.waits_itself, record);
    record.last_op = what.op;
    record.last_blocks = int64_t{what.grid.x} * what.grid.y * what.grid.z;
    device.note_kernel(what.op, kernel.name, stream);
    device.driver().launch({.kernel = kernel.handle,
                            .grid = what.grid,
                            .threads = what.threads,
                            .shared_bytes = what.shared_bytes,
                            .params_bytes = params_bytes,
                            .overlap = overlap},
                           stream.handle, params);
    ++record.queued;
  } catch (const Error& error) {
    fail(error.code(), what.op, what.kernel.view(), " on ", device.id(), ": ", error.what());
  }
}

}  // namespace rbee::gpu
