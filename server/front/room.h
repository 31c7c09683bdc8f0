#pragma once
// Whether a model fits into a device's memory, and which models have to leave it first.
//
// What is free is measured. A worker may take less than its model needs: while it loads, and on a
// host whose files are mapped, since their pages count as free there. The rest of its need is kept
// for it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rbee::server {

// A worker with a process, on the device in question.
struct Resident {
  size_t member = 0;
  int64_t need = 0;        // bytes of its model; 0: unknown
  int64_t taken = 0;       // bytes that the measured free memory already lacks
  bool on_demand = false;  // it can be unloaded at some time
  bool may_leave = false;  // it can be unloaded now, or once its requests are over
  bool busy = false;       // it works on requests
  bool going = false;      // it is being unloaded
  std::chrono::steady_clock::time_point used;  // when it was last used
};

struct Room {
  int64_t need = 0;  // bytes
  int64_t free = 0;  // bytes, as measured
  int64_t most = 0;  // bytes for all models together; 0 = what is free
  std::span<const Resident> residents;
};

struct RoomPlan {
  bool fits = false;  // now
  int64_t most = 0;   // bytes that there are once all models on demand have left
  // Members that make enough room: idle ones before busy ones, the least recently used first. Empty
  // if others that cannot leave now have to.
  std::vector<size_t> leave;
};

RoomPlan plan_room(const Room& room);

}  // namespace rbee::server
