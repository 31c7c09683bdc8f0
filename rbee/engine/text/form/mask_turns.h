#pragma once
// Masks that take more time than one step allows: each step continues them in turns, so that one
// answer's grammar delays neither requests without grammars nor small masks for long.

#include <functional>
#include <vector>

#include "rbee/engine/text/waiting_queue.h"

namespace rbee::engine {

class MaskTurns {
 public:
  // Works at a ticket's mask; false when no more is to be done.
  using Find = std::function<bool(const TicketPtr& ticket, int64_t& work)>;

  // Starts a step, whose masks have time again, and spends it on the held ones of `running`: a
  // slice for each, again and again. Another one begins at the next step.
  void begin(const std::vector<TicketPtr>& running, const Find& find);
  // If the step has time left, lets `find` do a slice of work (as in TokenMasks::add()): small
  // beside a step's time, and enough for a mask whose parts are known.
  void slice(const std::function<void(int64_t& work)>& find);

 private:
  // Units of work can take longer than they should, so the time itself is measured.
  bool has_time() const { return seconds_left_ > 0; }

  double seconds_left_ = 0;
  size_t turn_ = 0;
};

}  // namespace rbee::engine
