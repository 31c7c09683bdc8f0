#include "rbee/engine/text/form/mask_turns.h"

#include <algorithm>
#include <iterator>

namespace rbee::engine {
namespace {

constexpr int64_t kStepWork = 250'000;  // about 2 ms

}  // namespace

std::vector<TicketPtr> MaskTurns::begin(const std::vector<TicketPtr>& running) {
  work = kStepWork;
  std::vector<TicketPtr> held;
  std::ranges::copy_if(running, std::back_inserter(held), &Ticket::held);
  if (held.empty()) return held;
  std::ranges::rotate(held, held.begin() + static_cast<std::ptrdiff_t>(turn_++ % held.size()));
  return held;
}

}  // namespace rbee::engine
