#pragma once
// Memory that processes share. One folder of sources for each system: linux/, macos/.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rbee {

// A descriptor of new memory of no bytes: ftruncate() gives it a size, mmap() with MAP_SHARED maps
// it. It has no name that others could open. -1: errno tells why.
int new_shared_memory();

// Of words in memory that processes share.
// Sleeps while `word` has this value, at most `patience`. May return early.
void sleep_on(std::atomic<uint32_t>& word, uint32_t value, std::chrono::nanoseconds patience);
// Wakes all that sleep on it.
void wake_all(std::atomic<uint32_t>& word);

}  // namespace rbee
