#pragma once
// Memory of requests that are over.

#include <chrono>

namespace rbee::workers {

// The allocator keeps what threads freed, each in a part of its own: after some large requests a
// process holds hundreds of megabytes that nobody uses. This gives them back to the system.
class MemoryTrimmer {
 public:
  // From then on a thread's part is made smaller whenever its end is free, and large blocks have
  // pages of their own: after some of these the allocator would put the next ones into the parts.
  MemoryTrimmer();
  // To be called about once a second; does something every few seconds.
  void tick();

 private:
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace rbee::workers
