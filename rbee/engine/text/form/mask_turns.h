#pragma once
// Masks of constrained answers that take more work than a step has for them: each step goes on with
// them in turns, so that nobody waits long for another one's grammar.

#include <cstdint>
#include <vector>

#include "rbee/engine/text/waiting_queue.h"

namespace rbee::engine {

struct MaskTurns {
  // A step begins. Returns the tickets that are held, in the order in which they have their turn.
  std::vector<TicketPtr> begin(const std::vector<TicketPtr>& running);

  int64_t work = 0;  // left for the step's masks, as TokenMasks::add() has it

 private:
  size_t turn_ = 0;
};

}  // namespace rbee::engine
