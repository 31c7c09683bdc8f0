#pragma once
// Runs a kernel of Metal text that was compiled for this processor: a fiber for each thread of a
// threadgroup, which barriers and shuffles switch. Compiled by clang without sanitizers, since
// these follow one stack for a thread.
//
// It tells what a GPU would do wrongly in silence: a barrier that some threads do not reach, lanes
// of a simdgroup at different shuffles, a lane read that takes no part, an address that no buffer
// has, and a stack that is too deep. Not for several threads at once.

#include <cstddef>
#include <cstdint>
#include <string>

namespace rbee::fake {

using Uint3 = uint32_t __attribute__((ext_vector_type(3)));
// As the text declares kernels: parameters, launch, dynamic threadgroup memory, the thread's place
// in its group, the group's in the grid, the lane.
using KernelFunction = void (*)(const unsigned char*, const unsigned char*, unsigned char*, Uint3,
                                Uint3, uint32_t);

struct FiberLaunch {
  KernelFunction function = nullptr;
  const unsigned char* params = nullptr;
  const unsigned char* launch = nullptr;  // what the driver binds behind the parameters
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t dynamic_bytes = 0;
  // The kernel's own threadgroup memory.
  unsigned char* group_memory = nullptr;
  size_t group_bytes = 0;
  // The order in which lanes, simdgroups and groups run; 0: by number.
  uint32_t seed = 0;
};

// Returns the mistake of the kernel; empty: none.
std::string run_on_fibers(const FiberLaunch& launch);

}  // namespace rbee::fake

// What the shim metal_stdlib calls. Threads meet at the place of a call.
extern "C" {
void rb_fiber_barrier();
void rb_fiber_simd_barrier();
// The value that the other lane gave.
uint64_t rb_fiber_shuffle(uint64_t value, uint32_t lane);
// All 32 lanes of a simdgroup meet; `then`, unless it is null, gets what each gave.
void rb_fiber_together(const void* given, void (*then)(const void* const* all, void* out),
                       void* out);
uint32_t rb_fiber_lane();
}
