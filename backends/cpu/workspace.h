#pragma once
// Scratch memory for kernels: one buffer for each calling thread, which grows and is kept.

#include <cstddef>
#include <cstdint>

namespace rbee::cpu {

// At least `bytes`, 64-byte aligned, contents undefined; valid until the next call on this thread.
// A kernel calls it once, before its region, and cuts it up for the pool's threads. Throws
// out_of_memory.
std::byte* thread_workspace(int64_t bytes);

}  // namespace rbee::cpu
