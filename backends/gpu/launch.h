#pragma once
// The one way to start a kernel.

#include <cstdint>
#include <type_traits>

#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_name.h"

namespace rbee::gpu {

// What a kernel reads before those in front of it have ended.
// Constants are weights and the tables that say where the tokens of a step belong: no kernel that a
// layer's results come from writes them.
enum class ReadsAhead : uint8_t { nothing, constants, anything };

struct Launch {
  const char* op;      // as errors and profiles name it
  const char* family;  // stem of the kernel's source
  KernelName kernel;
  Grid grid;
  uint32_t threads = 256;     // per block
  uint32_t shared_bytes = 0;  // dynamic shared memory
  ReadsAhead reads_ahead = ReadsAhead::nothing;
  // What this kernel writes may be a constant that another reads ahead; false where it never is
  // (FusedLinearArgs).
  bool writes_constants = true;
};

// Queues the kernel, which may overlap with the end of the one in front: unless it reads ahead what
// could be under way, then it waits for all. Throws Error naming op, kernel and device; legal while
// a step is recorded. A grid with a 0 does nothing.
void launch_raw(Stream& stream, const Launch& launch, void* params);

template <typename Params>
void launch(Stream& stream, const Launch& what, Params params) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096,
                "kernel parameters travel as bytes, 4 KiB at most");
  launch_raw(stream, what, &params);
}

// ceil(count / each) as a grid dimension.
inline uint32_t blocks_for(int64_t count, int64_t each) {
  return static_cast<uint32_t>((count + each - 1) / each);
}

}  // namespace rbee::gpu
