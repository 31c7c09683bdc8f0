#include "rbee/engine/text/form/mask_turns.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace rbee::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStepSeconds = 0.0015;
constexpr int64_t kSliceWork = 15'000;  // 0.1 to 0.4 ms

}  // namespace

void MaskTurns::begin(const std::vector<TicketPtr>& running, const Find& find) {
  seconds_left_ = kStepSeconds;
  std::vector<TicketPtr> held;
  std::ranges::copy_if(running, std::back_inserter(held), &Ticket::held);
  if (held.empty()) return;
  std::ranges::rotate(held, held.begin() + static_cast<std::ptrdiff_t>(turn_++ % held.size()));
  while (!held.empty() && has_time()) {
    std::erase_if(held, [&](const TicketPtr& ticket) {
      bool goes_on = true;
      slice([&](int64_t& work) { goes_on = find(ticket, work); });
      return !goes_on;
    });
  }
}

void MaskTurns::slice(const std::function<void(int64_t& work)>& find) {
  if (!has_time()) return;
  const auto begin = Clock::now();
  int64_t work = kSliceWork;
  find(work);
  seconds_left_ -= std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace rbee::engine
