#pragma once
// Gives back the memory of finished requests.

#include <chrono>

namespace rbee::workers {

// The allocator keeps freed memory in an arena for each thread: after some large requests a process
// holds hundreds of megabytes that it does not use. This returns them to the system.
class MemoryTrimmer {
 public:
  // From now on an arena shrinks whenever its end is free, and large blocks get pages of their own:
  // by default the allocator would, after some of these, put the next ones into arenas.
  MemoryTrimmer();
  // Call it about once a second; it does something every few seconds.
  void tick();

 private:
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace rbee::workers
