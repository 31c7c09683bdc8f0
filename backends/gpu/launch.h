#pragma once
// The one way to start a kernel.

#include <cstdint>
#include <type_traits>

#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_name.h"

namespace rbee::gpu {

// What a kernel reads before earlier kernels have ended. Constants are weights and the tables of a
// step's token places: no kernel of a layer writes them. The tables are integers, and only
// pack_weight writes packed weights.
enum class ReadsAhead : uint8_t { nothing, packed_weights, tables, constants, anything };
// What a kernel writes: results that no kernel reads ahead (FusedLinearArgs), floats that may be a
// later operation's weight, anything, or packed weights.
enum class Writes : uint8_t { results, floats, anything, packed_weights };

struct Launch {
  const char* op;      // as errors and profiles name it
  const char* family;  // stem of the kernel's source
  KernelName kernel;
  Grid grid;
  uint32_t threads = 256;     // per block
  uint32_t shared_bytes = 0;  // dynamic shared memory
  ReadsAhead reads_ahead = ReadsAhead::nothing;
  Writes writes = Writes::anything;
};

// Queues the kernel. If its code waits for the previous kernel (Driver::waits_itself()), it may
// overlap with that kernel's end, unless it would read ahead data that may still be written. Throws
// Error naming op, kernel and device. Legal during capture. Does nothing for a grid with a 0.
void launch_raw(Stream& stream, const Launch& launch, const void* params, uint32_t params_bytes);

template <typename Params>
void launch(Stream& stream, const Launch& what, const Params& params) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096,
                "kernel parameters travel as bytes, 4 KiB at most");
  launch_raw(stream, what, &params, sizeof params);
}

// ceil(count / each) as a grid dimension.
inline uint32_t blocks_for(int64_t count, int64_t each) {
  return static_cast<uint32_t>((count + each - 1) / each);
}

}  // namespace rbee::gpu
