#pragma once
// Masks that take more work than one step allows: each step continues them in turns, so that one
// answer's grammar does not delay the other requests for long.

#include <cstdint>
#include <vector>

#include "rbee/engine/text/waiting_queue.h"

namespace rbee::engine {

struct MaskTurns {
  // Starts a step. Returns the held tickets in the order of their turns.
  std::vector<TicketPtr> begin(const std::vector<TicketPtr>& running);

  int64_t work = 0;  // left for this step's masks, as in TokenMasks::add()

 private:
  size_t turn_ = 0;
};

}  // namespace rbee::engine
