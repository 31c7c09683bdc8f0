#pragma once
// Work that leaves processors to other threads.

#include <functional>

namespace rbee {

// The calling thread leaves processors to others from now on. On Linux a thread cannot take that
// back. One source for each system: system/.
void lower_priority();

// Runs `work` on a thread of its own with lower_priority(), and waits for it. The caller's
// CancelScope counts there too. Throws what `work` throws.
void run_in_background(const std::function<void()>& work);

}  // namespace rbee
