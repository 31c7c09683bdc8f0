#include "server/front/room.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rbee::server {
namespace {

// Free memory in two counts: as measured, and as allowed.
struct Free {
  int64_t measured = 0;
  int64_t allowed = std::numeric_limits<int64_t>::max() / 2;

  int64_t bytes() const { return std::min(measured, allowed); }
  void stay(const Resident& one) {
    measured -= std::max<int64_t>(0, one.need - one.taken);
    allowed -= one.need;
  }
  void leave(const Resident& one) {
    measured += std::max(one.need, one.taken);
    allowed += one.need;
  }
  void stay_again(const Resident& one) {
    measured -= std::max(one.need, one.taken);
    allowed -= one.need;
  }
};

}  // namespace

RoomPlan plan_room(const Room& room) {
  Free now{.measured = room.free};
  if (room.most > 0) now.allowed = room.most;
  for (const Resident& one : room.residents) now.stay(one);
  Free at_best = now, soon = now;
  std::vector<Resident> leavers;
  for (const Resident& one : room.residents) {
    if (one.on_demand) at_best.leave(one);
    if (one.going) {
      soon.leave(one);
    } else if (one.may_leave) {
      leavers.push_back(one);
    }
  }
  RoomPlan out{.fits = now.bytes() >= room.need, .most = std::max<int64_t>(0, at_best.bytes())};
  if (out.fits || out.most < room.need) return out;
  std::ranges::sort(leavers, {},
                    [](const Resident& one) { return std::tuple(one.busy, one.used, one.member); });
  std::vector<Resident> leave;
  for (const Resident& one : leavers) {
    if (soon.bytes() >= room.need) break;
    leave.push_back(one);
    soon.leave(one);
  }
  if (soon.bytes() < room.need) return out;  // others have to be idle first: these would not help
  // Those that the room does not need after all stay, the most recently used ones first.
  for (size_t i = leave.size(); i-- > 0;) {
    Free without = soon;
    without.stay_again(leave[i]);
    if (without.bytes() < room.need) continue;
    soon = without;
    leave.erase(leave.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const Resident& one : leave) out.leave.push_back(one.member);
  return out;
}

}  // namespace rbee::server
