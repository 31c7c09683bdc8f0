#pragma once
// The CPU backend: one device, "cpu:0", whose kernels run on a persistent pool of threads.

#include "backends/api/registry.h"

namespace rbee::cpu {

const BackendInfo& cpu_backend();

// Sets the pool's threads, with the caller; call it before the first use of the device. 0 = one for
// each physical core this process may run on. Throws invalid_argument outside 0 to 1024.
void set_thread_count(int threads);

// Returns freed tensor memory, which the allocator keeps, to the system.
void trim_memory();

}  // namespace rbee::cpu
