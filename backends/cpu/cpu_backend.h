#pragma once
// The CPU backend: one device, "cpu:0", whose kernels run on a persistent pool of threads.

#include "backends/api/registry.h"

namespace rbee::cpu {

const BackendInfo& cpu_backend();

// Threads of the pool, the caller included; call before the device is first used. 0 = one for each
// physical core this process may run on. Throws invalid_argument outside 0 to 1024.
void set_thread_count(int threads);

// Gives the memory that tensors have freed, and that is kept for others, back to the system.
void trim_memory();

}  // namespace rbee::cpu
